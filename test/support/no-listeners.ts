import type { LiveEvents } from '../../src/live-events/live-events.service.js';

/** Nobody listens to live events. */
export const noListeners = { isOn: false } as LiveEvents;
