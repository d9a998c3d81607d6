import { Gauge } from 'prom-client';

/**
 * A gauge of the seconds since something was last done. It is reckoned when it is read, so that it rises while nothing
 * is done.
 */
export interface AgeGauge {
  /** It was done now. @param value of the label, where the gauge has one */
  renew(value?: string): void;
}

interface Told {
  /** Its name, if what is done is told apart. */
  label?: string;
  /** A second gauge, of which the least age counts: for what is done for all as long as one process does it. */
  least?: { name: string; help: string };
}

/**
 * Not there before it is renewed for the first time. Of several processes the largest counts: one that lags must not
 * hide behind the others. By the clock that is never set, because those of Heraut's machines may be wrong.
 */
export function ageGauge(name: string, help: string, { label, least }: Told = {}): AgeGauge {
  const doneAt = new Map<string, number>();
  const tell = (own: { name: string; help: string; aggregator: 'max' | 'min' }) => {
    const gauge = new Gauge({
      ...own,
      labelNames: label === undefined ? [] : [label],
      collect() {
        const now = performance.now();
        for (const [value, at] of doneAt)
          this.set(label === undefined ? {} : { [label]: value }, Math.max(0, now - at) / 1000);
      },
    });
    if (label === undefined) gauge.remove(); // it would begin at 0
  };
  tell({ name, help, aggregator: 'max' });
  if (least) tell({ ...least, aggregator: 'min' });
  return { renew: (value = '') => void doneAt.set(value, performance.now()) };
}
