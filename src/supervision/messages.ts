import type { MetricSnapshot } from './metric-totals.js';
import type { Room } from './siblings.js';

/** From the supervisor to one of its processes. */
export type ToProcess =
  | { kind: 'are-you-there' }
  /** Asks for the metrics of this process; `scrape` comes back with them. */
  | { kind: 'ask-metrics'; scrape: number }
  /** The metrics of all processes, in the text format of Prometheus. */
  | { kind: 'all-metrics'; request: number; text: string }
  /** The process `from` has so many deliveries in memory, and asks for room; `room` goes back to it. */
  | { kind: 'ask-room'; from: number; question: number; deliveries: number }
  /** Undefined: the process `from` has none. */
  | { kind: 'room'; from: number; question: number; room: Room | undefined }
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
  | { kind: 'ask-room'; question: number; deliveries: number }
  | { kind: 'room'; to: number; question: number; room: Room | undefined }
  | { kind: 'hand-over'; to: number; message: Uint8Array };
