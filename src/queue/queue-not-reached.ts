/**
 * The queue of a lane seems to be empty and without a reader, although a worker is alive, which reads all lanes.
 * RabbitMQ answers so for a quorum queue of which it does not reach the leader, however much is in it
 * (rabbit_quorum_queue:stat); and for one that is empty while the only worker starts or stops.
 */
export class QueueNotReached extends Error {
  /** @param forMs for how long it has been so */
  constructor(
    queue: string,
    readonly forMs: number,
  ) {
    super(`${queue} seems to be empty and without a reader, although a worker is alive: has it a leader?`);
  }
}
