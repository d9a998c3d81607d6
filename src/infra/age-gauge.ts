import { Gauge } from 'prom-client';

/** A gauge of the seconds since something was last done. It is reckoned when it is read, so that it rises while nothing is done. */
export interface AgeGauge {
  /** It was done now. @param value of the label, where the gauge has one */
  renew(value?: string): void;
}

/**
 * Not there before it is renewed for the first time. Of several processes the largest counts: one that lags must not hide behind
 * the others. By the clock that is never set, because those of Heraut's machines may be wrong.
 * @param label its name, if what is done is told apart
 */
export function ageGauge(name: string, help: string, label?: string): AgeGauge {
  const doneAt = new Map<string, number>();
  const gauge = new Gauge({
    name,
    help,
    labelNames: label === undefined ? [] : [label],
    aggregator: 'max',
    collect() {
      const now = performance.now();
      for (const [value, at] of doneAt)
        this.set(label === undefined ? {} : { [label]: value }, Math.max(0, now - at) / 1000);
    },
  });
  if (label === undefined) gauge.remove(); // it would begin at 0
  return { renew: (value = '') => void doneAt.set(value, performance.now()) };
}
