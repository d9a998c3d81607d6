import { createRequire } from 'node:module';

// From dist/src/delivery as from src/delivery, the nearest package.json upwards is Heraut's own.
const { version } = createRequire(import.meta.url)(
  import.meta.url.includes('/dist/') ? '../../../package.json' : '../../package.json',
) as { version: string };

export const userAgent = `Heraut/${version}`;
