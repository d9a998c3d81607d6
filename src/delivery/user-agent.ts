import { version } from '../infra/version.js';

export const userAgent = `Heraut/${version}`;
