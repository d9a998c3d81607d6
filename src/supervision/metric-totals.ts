import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from 'prom-client';

/** The metrics of one process, as `register.getMetricsAsJSON()` has them. */
export type MetricSnapshot = MetricObjectWithValues<MetricValue<string>>[];

/**
 * The gauges of a living process that does not answer are kept for so long after its last answer: one that stands still
 * would otherwise take the gauge with it that says so. One that hangs for longer is killed (`mostUnanswered`).
 */
const gaugesKeptForMs = 30_000;

/** Metrics that only rise. prom-client's types name the kinds by number; its objects have their names. */
const rising: unknown[] = ['counter', 'histogram', 'summary'];

/**
 * The metrics of several processes as one. The counts of a process stay when it ends: Prometheus takes a counter that
 * falls for one that began again at zero, and would count everything a second time.
 */
export class MetricTotals {
  private ended: MetricSnapshot = [];
  private readonly last = new Map<number, { scrape: number; at: number; metrics: MetricSnapshot }>();

  /** @param now milliseconds of a clock that nobody sets */
  constructor(private readonly now: () => number) {}

  /** The metrics of process `id`, told for that scrape. */
  tell(id: number, scrape: number, metrics: MetricSnapshot): void {
    this.last.set(id, { scrape, at: this.now(), metrics });
  }

  /** Process `id` has ended. Its gauges, such as its memory, end with it. */
  end(id: number): void {
    const last = this.last.get(id);
    if (!last) return;
    this.last.delete(id);
    this.ended = aggregate([this.ended, risingOnly(last.metrics)]).getMetricsAsArray() as MetricSnapshot;
  }

  /**
   * All in the text format of Prometheus. A process that has not answered this scrape counts with what it told last;
   * after half a minute without its gauges.
   * @param others metrics that belong to no process
   */
  async text(scrape: number, others: MetricSnapshot): Promise<string> {
    const since = this.now() - gaugesKeptForMs;
    const told = [...this.last.values()].map((last) =>
      last.scrape === scrape || last.at >= since ? last.metrics : risingOnly(last.metrics),
    );
    return aggregate([...told, this.ended, others]).metrics();
  }
}

const aggregate = (snapshots: MetricSnapshot[]) => AggregatorRegistry.aggregate(snapshots);

const risingOnly = (metrics: MetricSnapshot) => metrics.filter(({ type }) => rising.includes(type));
