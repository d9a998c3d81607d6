import { version } from './version.js';

/** Of calls to receivers, token endpoints, documentation and alerts: many a firewall refuses a call without one. */
export const userAgent = `Heraut/${version}`;
