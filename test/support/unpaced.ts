import type { BacklogPace } from '../../src/queue/backlog-pace.service.js';

/** Of a process in which nothing fresh is protected. */
export const unpaced = {
  fresh: () => {},
  start: () => undefined,
  restAfter: () => 0,
  stop: () => {},
} as unknown as BacklogPace;
