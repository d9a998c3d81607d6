import type { MetricSnapshot } from './metric-totals.js';

/** From the supervisor to one of its processes. */
export type ToProcess =
  | { kind: 'are-you-there' }
  /** Asks for the metrics of this process; `scrape` comes back with them. */
  | { kind: 'ask-metrics'; scrape: number }
  /** The metrics of all processes, in the text format of Prometheus. */
  | { kind: 'all-metrics'; request: number; text: string };

/** From a process to its supervisor. */
export type ToSupervisor =
  | { kind: 'here' }
  | { kind: 'metrics'; scrape: number; metrics: MetricSnapshot }
  /** Asks for the metrics of all processes; `request` comes back with them. */
  | { kind: 'ask-all-metrics'; request: number };
