/** How much a process takes of what another one accepts. */
export interface Capacity {
  /** Id of the process that has it, by its heartbeat. */
  process: string;
  deliveries: number;
  /** With their texts, about. */
  bytes: number;
}

/** Takes the messages of siblings, in a process. */
export interface SiblingListener {
  /** `sibling` has so many deliveries in memory, and asks for capacity. @returns undefined: there is none for it */
  capacityFor(sibling: number, deliveries: number): Capacity | undefined;
  /** The answer of `sibling` to the question with that number. */
  answered(question: number, sibling: number, capacity: Capacity | undefined): void;
  /** Deliveries that a sibling has accepted. Must not throw. */
  handedOver(message: Buffer): void;
}

/**
 * The other processes of this installation on this machine: those with the same supervisor. A message to one of them is
 * lost if that process, or the supervisor, ends before it arrives.
 */
export abstract class Siblings {
  /**
   * @param process id of this process, by its heartbeat: what its siblings are told when it has ended
   * @param onEnded is told the same of each sibling that has ended: nothing of that one runs any more
   */
  abstract announce(process: string, onEnded: (process: string) => void): void;
  abstract listen(listener: SiblingListener): void;
  /**
   * Asks one of them, each in turn, for capacity: this process has so many deliveries in memory. There may be no
   * answer.
   */
  abstract askForCapacity(question: number, deliveries: number): void;
  abstract handOver(sibling: number, message: Buffer): void;
}

/** Of a process without a supervisor. */
export const noSiblings: Siblings = { announce() {}, listen() {}, askForCapacity() {}, handOver() {} };
