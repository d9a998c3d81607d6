// Documents of the repository that are made from something else there.
import { build } from 'esbuild';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'oxfmt';
import style from '../oxfmt.config.mjs';
import { projectDirectory } from './ready-to-run.mjs';

/**
 * Writes a document; with --check this process only says whether it is up to date, and fails where it is not.
 * @param {string} path from the project's directory
 * @param {string} text
 * @param {{ source: string, command: string }} origin `command`: the script of package.json that writes it
 */
export async function writeOrCheck(path, text, { source, command }) {
  const target = join(projectDirectory, path);
  const document = await formatted(target, text);
  if (!process.argv.includes('--check')) {
    writeFileSync(target, document);
  } else if (!existsSync(target) || readFileSync(target, 'utf8') !== document) {
    console.error(`${path} is not what ${source} says. Run: npm run ${command}`);
    process.exitCode = 1;
  }
}

/**
 * As `npm run format` would write it.
 * @param {string} file its name says the language
 * @param {string} text
 * @returns {Promise<string>}
 * @throws {Error} where it is not of that language
 */
async function formatted(file, text) {
  const { ignorePatterns: _, ...options } = style;
  const { code, errors } = await format(file, text, options);
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));
  return code;
}

/**
 * A module of the sources, joined by itself with those that it imports, so that the document does not wait for a build.
 * @param {string} path from the project's directory
 * @returns {Promise<any>}
 */
export async function loadTypeScript(path) {
  // Inside the project, where packages are found.
  const directory = mkdtempSync(join(projectDirectory, 'node_modules/.generated-'));
  const outfile = join(directory, 'module.mjs');
  try {
    await build({
      absWorkingDir: projectDirectory,
      entryPoints: [path],
      outfile,
      bundle: true,
      packages: 'external',
      platform: 'node',
      format: 'esm',
      logLevel: 'warning',
    });
    return await import(outfile);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
