import { createRequire } from 'node:module';

/** The version in package.json, which is three folders above dist/src/infra and two above src/infra. */
export const { version } = createRequire(import.meta.url)(
  import.meta.url.includes('/dist/') ? '../../../package.json' : '../../package.json',
) as { version: string };
