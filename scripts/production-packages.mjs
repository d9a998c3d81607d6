// The packages that an installed Heraut consists of, from the lock: what only tests and the build need is left out.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectDirectory } from './ready-to-run.mjs';

/**
 * @typedef {object} LockedPackage
 * @property {string} name
 * @property {string} version
 * @property {string} licence SPDX expression
 * @property {string} path where it is installed, in the project's directory
 */

/** An optional peer of @nestjs/swagger, which the program does not load: it builds, and the image leaves it out. */
const compiler = /\/(typescript|@typescript\/[^/]+)$/;

/**
 * Each once, by name and version.
 * @returns {LockedPackage[]}
 */
export function productionPackages() {
  /** @type {Record<string, { version: string, license?: string, dev?: boolean, link?: boolean }>} */
  const locked = JSON.parse(readFileSync(join(projectDirectory, 'package-lock.json'), 'utf8')).packages;
  /** @type {Map<string, LockedPackage>} */
  const packages = new Map();
  for (const [path, { version, license = 'none given', dev, link }] of Object.entries(locked)) {
    const isOurs = !path.includes('node_modules/') || link;
    if (isOurs || dev || compiler.test(path)) continue;
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    packages.set(`${name}@${version}`, { name, version, licence: license, path });
  }
  return [...packages.entries()].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, each]) => each);
}
