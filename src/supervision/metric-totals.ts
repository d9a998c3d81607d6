import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from 'prom-client';

/** The metrics of one process, as `register.getMetricsAsJSON()` has them. */
export type MetricSnapshot = MetricObjectWithValues<MetricValue<string>>[];

/** Metrics that only rise. prom-client's types name the kinds by number; its objects have their names. */
const rising: unknown[] = ['counter', 'histogram', 'summary'];

/**
 * The metrics of several processes as one. A living process that does not answer in time counts with what it told last,
 * gauges too: one that stands still would otherwise take the gauge with it that says so. One that hangs is killed soon
 * (`mostUnanswered`). The counts of a process stay when it ends: Prometheus takes a counter that falls for one that
 * began again at zero, and would count everything a second time.
 */
export class MetricTotals {
  private ended: MetricSnapshot = [];
  private readonly last = new Map<number, MetricSnapshot>();

  /** The metrics of process `id`. */
  tell(id: number, metrics: MetricSnapshot): void {
    this.last.set(id, metrics);
  }

  /** Process `id` has ended. Its gauges, such as its memory, end with it. */
  end(id: number): void {
    const last = this.last.get(id);
    if (!last) return;
    this.last.delete(id);
    this.ended = aggregate([this.ended, risingOnly(last)]).getMetricsAsArray() as MetricSnapshot;
  }

  /**
   * All in the text format of Prometheus.
   * @param others metrics that belong to no process
   */
  async text(others: MetricSnapshot): Promise<string> {
    return aggregate([...this.last.values(), this.ended, others]).metrics();
  }
}

const aggregate = (snapshots: MetricSnapshot[]) => AggregatorRegistry.aggregate(snapshots);

const risingOnly = (metrics: MetricSnapshot) => metrics.filter(({ type }) => rising.includes(type));
