import { afterEach, describe, expect, it, vi } from 'vitest';
import { Counter, Gauge, Histogram, register, Registry } from 'prom-client';
import { ageGauge } from '../infra/age-gauge.js';
import { MetricTotals, type MetricSnapshot } from './metric-totals.js';

/** The metrics of one process. */
class OneProcess {
  private readonly registry = new Registry();
  private readonly registers = [this.registry];
  readonly done = new Counter({ name: 'done_total', help: 'h', labelNames: ['way'], registers: this.registers });
  readonly took = new Histogram({ name: 'took', help: 'h', buckets: [1], registers: this.registers });
  readonly open = new Gauge({ name: 'open', help: 'h', registers: this.registers });
  readonly lag = new Gauge({ name: 'lag', help: 'h', aggregator: 'max', registers: this.registers });

  async tell(): Promise<MetricSnapshot> {
    return (await this.registry.getMetricsAsJSON()) as unknown as MetricSnapshot;
  }
}

async function samples(totals: MetricTotals): Promise<Record<string, number>> {
  const lines = (await totals.text([])).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line): [string, number] => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

afterEach(() => vi.restoreAllMocks());

describe('the metrics of several processes', () => {
  it('are summed by label, unless a metric says otherwise', async () => {
    const [one, two, totals] = [new OneProcess(), new OneProcess(), new MetricTotals()];
    one.done.inc({ way: 'a' }, 2);
    two.done.inc({ way: 'a' }, 3);
    two.done.inc({ way: 'b' });
    for (const [process, lag] of [
      [one, 5],
      [two, 4],
    ] as const) {
      process.took.observe(0.5);
      process.open.set(1);
      process.lag.set(lag);
    }
    totals.tell(1, await one.tell());
    totals.tell(2, await two.tell());
    expect(await samples(totals)).toEqual({
      'done_total{way="a"}': 5,
      'done_total{way="b"}': 1,
      'took_bucket{le="1"}': 2,
      'took_bucket{le="+Inf"}': 2,
      took_sum: 1,
      took_count: 2,
      open: 2,
      lag: 5,
    });
  });

  it('tell by two gauges of an age that one of them stands, and that not all do', async () => {
    const age = ageGauge('test_age', 'h', { label: 'task', least: { name: 'test_least_age', help: 'h' } });
    const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
    const tell = async (seconds: number) => {
      age.renew('hand-out');
      clock.mockReturnValue(performance.now() + seconds * 1000);
      const all = (await register.getMetricsAsJSON()) as unknown as MetricSnapshot;
      return all.filter(({ name }) => name.startsWith('test_'));
    };
    const totals = new MetricTotals();
    totals.tell(1, await tell(90));
    totals.tell(2, await tell(0.5));
    for (const name of ['test_age', 'test_least_age']) register.removeSingleMetric(name);
    expect(await samples(totals)).toEqual({
      'test_age{task="hand-out"}': 90,
      'test_least_age{task="hand-out"}': 0.5,
    });
  });

  it('keep what ended processes had counted, and nothing else of them', async () => {
    const totals = new MetricTotals();
    for (const id of [1, 2, 3]) {
      const process = new OneProcess();
      process.done.inc({ way: 'a' });
      process.took.observe(0.5);
      process.open.set(7);
      totals.tell(id, await process.tell());
      totals.end(id);
    }
    const successor = new OneProcess();
    successor.done.inc({ way: 'a' });
    successor.open.set(1);
    totals.tell(4, await successor.tell());
    expect(await samples(totals)).toMatchObject({ 'done_total{way="a"}': 4, took_count: 3, open: 1, lag: 0 });
  });

  it('count a living process that does not answer with what it told last, however long ago', async () => {
    const [one, two, totals] = [new OneProcess(), new OneProcess(), new MetricTotals()];
    for (const process of [one, two]) {
      process.done.inc({ way: 'a' });
      process.open.set(1);
    }
    one.lag.set(5);
    totals.tell(1, await one.tell());
    totals.tell(2, await two.tell());
    for (let scrape = 0; scrape < 3; scrape++) {
      two.done.inc({ way: 'a' });
      totals.tell(2, await two.tell());
      expect(await samples(totals)).toMatchObject({ 'done_total{way="a"}': 3 + scrape, open: 2, lag: 5 });
    }
    totals.end(1);
    expect(await samples(totals)).toMatchObject({ 'done_total{way="a"}': 5, open: 1, lag: 0 });
  });

  it('are empty while no process has told any', async () => {
    const totals = new MetricTotals();
    totals.end(1);
    expect(await samples(totals)).toEqual({});
  });
});
