import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { env } from 'node:process';
import { textOf } from '../infra/utf8-text.js';
import type { Sources } from './resolve-references.js';

/** The variables of this process, and files as a configuration file names them: from its own directory. */
export const sourcesBeside = (file: string): Sources => ({
  variable: (name) => env[name],
  file: (path) => textOf(readFileSync(resolve(dirname(file), path))),
});

/** Values that a request gives: of variables, by their names, and of files, by their paths. */
export interface GivenValues {
  env?: Record<string, string> | undefined;
  file?: Record<string, string> | undefined;
}

/** Nothing of this process: neither its variables nor its files are anybody's to read. */
export const sourcesGiven = ({ env: variables = {}, file: files = {} }: GivenValues): Sources => ({
  isPartial: true,
  variable: (name) => (Object.hasOwn(variables, name) ? variables[name] : undefined),
  file: (path) => (Object.hasOwn(files, path) ? files[path]! : ''),
});
