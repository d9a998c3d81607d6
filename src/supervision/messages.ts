import type { MetricSnapshot } from './metric-totals.js';
import type { Capacity } from './siblings.js';

/** From the supervisor to one of its processes. */
export type ToProcess =
  | { kind: 'are-you-there' }
  /** Asks for the metrics of this process; `scrape` comes back with them. */
  | { kind: 'ask-metrics'; scrape: number }
  /** The metrics of all processes, in the text format of Prometheus. */
  | { kind: 'all-metrics'; request: number; text: string }
  /** The process `from` has so many deliveries in memory, and asks for capacity; `capacity` goes back to it. */
  | { kind: 'ask-capacity'; from: number; question: number; deliveries: number }
  /** Undefined: the process `from` has none. */
  | { kind: 'capacity'; from: number; question: number; capacity: Capacity | undefined }
  | { kind: 'handed-over'; message: Uint8Array }
  /** The id that it had announced. */
  | { kind: 'sibling-ended'; process: string };

/** From a process to its supervisor. */
export type ToSupervisor =
  | { kind: 'here' }
  /** `process`: id of this process, by its heartbeat. */
  | { kind: 'announce'; process: string }
  | { kind: 'metrics'; scrape: number; metrics: MetricSnapshot }
  /** Asks for the metrics of all processes; `request` comes back with them. */
  | { kind: 'ask-all-metrics'; request: number }
  /** For one of the other processes, whichever has its turn. */
  | { kind: 'ask-capacity'; question: number; deliveries: number }
  | { kind: 'capacity'; to: number; question: number; capacity: Capacity | undefined }
  | { kind: 'hand-over'; to: number; message: Uint8Array };
