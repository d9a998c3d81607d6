import cluster, { type Worker } from 'node:cluster';
import { register } from 'prom-client';
import { UnavailableProblem } from '../infra/http/problem.js';
import type { ToProcess, ToSupervisor } from './messages.js';
import type { SiblingListener, Siblings } from './siblings.js';

/** Longer than the supervisor waits for the metrics of one process. */
const supervisorAnswersMs = 5000;

/** The supervisor, as one of its processes sees it. */
export class Supervised {
  private readonly requests = new Map<number, (text: string) => void>();
  private lastRequest = 0;
  private listener: SiblingListener | undefined;
  private onEnded: (process: string) => void = () => {};

  /** By way of the supervisor. */
  readonly siblings: Siblings = {
    announce: (process, onEnded) => {
      this.onEnded = onEnded;
      this.tell({ kind: 'announce', process });
    },
    listen: (listener) => (this.listener = listener),
    askForCapacity: (question, deliveries) => this.tell({ kind: 'ask-capacity', question, deliveries }),
    handOver: (to, message) => this.tell({ kind: 'hand-over', to, message }),
  };

  private constructor(private readonly worker: Worker) {
    worker.on('message', (message: ToProcess) => this.read(message));
  }

  /** @returns undefined in a process that has no supervisor */
  static join(): Supervised | undefined {
    return cluster.worker && new Supervised(cluster.worker);
  }

  /** Whether it is the first that its supervisor has started, and no successor: it says what is to be said once. */
  get isFirst(): boolean {
    return this.worker.id === 1;
  }

  /**
   * The metrics of all processes, in the text format of Prometheus.
   * @throws {UnavailableProblem} when the supervisor does not answer: the metrics of this process alone would be
   *   counters that fall
   */
  async metrics(): Promise<string> {
    const request = ++this.lastRequest;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise((resolve, reject) => {
        timer = setTimeout(
          () => reject(new UnavailableProblem('The supervisor does not answer.', 5)),
          supervisorAnswersMs,
        );
        this.requests.set(request, resolve);
        this.tell({ kind: 'ask-all-metrics', request });
      });
    } finally {
      clearTimeout(timer);
      this.requests.delete(request);
    }
  }

  /**
   * Calls `stop` when the supervisor is killed. Without this, and before it, the process would end at once and leave
   * what it has in hand to the recovery rules.
   */
  onSupervisorGone(stop: () => void): void {
    this.worker.once('disconnect', () => {
      this.worker.exitedAfterDisconnect = true;
      stop();
    });
  }

  private read(message: ToProcess): void {
    switch (message.kind) {
      case 'are-you-there':
        return this.tell({ kind: 'here' });
      case 'ask-metrics':
        return void this.tellMetrics(message.scrape);
      case 'all-metrics':
        return this.requests.get(message.request)?.(message.text);
      case 'ask-capacity':
        return this.tellRoom(message.from, message.question, message.deliveries);
      case 'capacity':
        return this.listener?.answered(message.question, message.from, message.capacity);
      case 'handed-over':
        return this.listener?.handedOver(asBuffer(message.message));
      case 'sibling-ended':
        return this.onEnded(message.process);
    }
  }

  private tellRoom(to: number, question: number, deliveries: number): void {
    this.tell({ kind: 'capacity', to, question, capacity: this.listener?.capacityFor(to, deliveries) });
  }

  private async tellMetrics(scrape: number): Promise<void> {
    this.tell({ kind: 'metrics', scrape, metrics: await register.getMetricsAsJSON() });
  }

  private tell(message: ToSupervisor): void {
    // Fails only when the supervisor is gone, which is noticed by `disconnect`.
    this.worker.send(message, () => {});
  }
}

const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array) => Buffer.from(buffer, byteOffset, byteLength);
