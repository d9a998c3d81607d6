import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { env } from 'node:process';
import type { Sources } from './resolve-references.js';

/** The variables of this process, and files as a configuration file names them: from its own directory. */
export const sourcesBeside = (file: string): Sources => ({
  variable: (name) => env[name],
  file: (path) => readFileSync(resolve(dirname(file), path), 'utf8'),
});
