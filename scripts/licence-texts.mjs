// Licence texts that no package brings along, kept by hand in `licences`.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const kept = fileURLToPath(new URL('../licences/', import.meta.url));

/** Other programs within a package. It was looked at in this version; another one may have others within it. */
export const embedded = {
  package: '@electric-sql/pglite',
  packageVersion: '0.5.16',
  // Its pglite.wasm names them, and two of their versions.
  programs: [
    { name: 'PostgreSQL', version: '18.6', licence: 'PostgreSQL', text: 'postgresql.txt' },
    { name: 'ICU', version: '76.1', licence: 'Unicode-3.0', text: 'icu.txt' },
    { name: 'libxml2', licence: 'MIT', text: 'libxml2.txt' },
    { name: 'libxslt', licence: 'MIT', text: 'libxslt.txt' },
    { name: 'zlib', licence: 'Zlib', text: 'zlib.txt' },
    { name: 'OSSP uuid', licence: 'its own, much like ISC', isOwn: true, text: 'ossp-uuid.txt' },
  ],
};

/**
 * Packages that name a licence and have no file with its text.
 * @type {Record<string, string>}
 */
const ofPackages = {
  '@bomb.sh/tab': 'bomb.sh-tab.txt',
  '@tokenizer/token': 'tokenizer-token.txt',
  'abstract-logging': 'abstract-logging.txt',
  'pg-types': 'pg-types.txt',
  pgpass: 'pgpass.txt',
  'react-remove-scroll-bar': 'react-remove-scroll-bar.txt',
  typeorm: 'typeorm.txt',
};

/**
 * @param {string} name of a package
 * @param {string} directory where it is installed
 * @returns {string | undefined}
 */
export function licenceTextOf(name, directory) {
  const file = readdirSync(directory).find((each) => /^(un)?licen[cs]e|^copying/i.test(each));
  const path = file ? join(directory, file) : name in ofPackages ? join(kept, ofPackages[name] ?? '') : undefined;
  return path && existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}
