/** How much a process takes of what another one accepts. */
export interface Room {
  /** Id of the process that has it, by its heartbeat. */
  process: string;
  deliveries: number;
  /** With their texts, about. */
  bytes: number;
}

/** One end of what siblings tell each other. */
export interface SiblingListener {
  /** A sibling has so many deliveries in memory. @returns undefined: this process has no room for any of them */
  roomFor(deliveries: number): Room | undefined;
  /** `sibling` has room, in answer to a question. */
  room(sibling: number, room: Room): void;
  /** What a sibling accepted. Must not throw. */
  handedOver(message: Buffer): void;
}

/** The other processes of this installation on this machine: those with the same supervisor. What is told to one of them may be lost with it. */
export abstract class Siblings {
  abstract listen(listener: SiblingListener): void;
  /** Asks one of them, each in turn, for room: this process has so many deliveries in memory. It need not answer. */
  abstract askForRoom(deliveries: number): void;
  abstract handOver(sibling: number, message: Buffer): void;
}

/** Of a process without a supervisor. */
export const noSiblings: Siblings = { listen() {}, askForRoom() {}, handOver() {} };
