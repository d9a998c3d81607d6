import { createRequire } from 'node:module';

/** Of the program, from package.json: the same number of folders up from dist/src/infra as from src/infra, but for `dist`. */
export const { version } = createRequire(import.meta.url)(
  import.meta.url.includes('/dist/') ? '../../../package.json' : '../../package.json',
) as { version: string };
