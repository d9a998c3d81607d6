import type { Lane } from './delivery-queue.js';

/** The queue of a lane confirms nothing that is published to it, although the broker is there. */
export class LaneSilent extends Error {
  constructor(lane: Lane) {
    super(`the queue of the lane ${lane} confirms nothing`);
  }
}
