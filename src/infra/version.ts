import { createRequire } from 'node:module';

/** The version in package.json, wherever the build has put this file. */
export const { version } = createRequire(import.meta.url)('#package.json') as { version: string };
