// Builds the console into web/dist: the page and its files, each also compressed; and the types of the admin API from
// its document, for an editor and a type check, which need the compiled program. `--page` or `--types`: only that. A word: the
// directory that stands for `dist`, here and in the project.
import openapiTS, { astToString } from 'openapi-typescript';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';
import { writeAdminOpenApi } from '../scripts/admin-openapi.mjs';
import { licenceTextOf } from '../scripts/licence-texts.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const [directory = 'dist'] = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const assets = join(here, directory, 'assets');

const [isForPage, isForTypes] = ['--page', '--types'].map((word) => process.argv.includes(word));
if (!isForPage) await writeTypes();
if (!isForTypes) {
  const result = await build({
    root: here,
    configFile: join(here, 'vite.config.ts'),
    build: { outDir: directory },
    logLevel: 'warn',
  });
  writeLicences([result].flat());
  compress();
}

async function writeTypes() {
  const document = JSON.parse(readFileSync(await writeAdminOpenApi(directory), 'utf8'));
  const types = astToString(await openapiTS(document, { alphabetize: true }));
  mkdirSync(join(here, 'generated'), { recursive: true });
  writeFileSync(
    join(here, 'generated/admin-api.d.ts'),
    `// Generated from the document of the admin API by web/build.mjs.\n${types}`,
  );
}

/**
 * The licences of the packages whose code is in the built files: they ask that their text goes along, and the image has
 * no other copy.
 * @param {any[]} results of the build
 */
function writeLicences(results) {
  /** @type {string[]} */
  const modules = results.flatMap(({ output }) => output.flatMap((/** @type {any} */ chunk) => chunk.moduleIds ?? []));
  const directories = modules.flatMap(
    (id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id.replace(/^\0/, ''))?.[0] ?? [],
  );
  const texts = [...new Set(directories)].toSorted().map((directory) => {
    const { name, version, license } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
    const text = licenceTextOf(name, directory);
    if (!text) throw new Error(`${name} ${version} has no text of its licence: scripts/licence-texts.mjs needs one.`);
    return `${name} ${version}: ${license}\n\n${text}`;
  });
  writeFileSync(join(dirname(assets), 'licences.txt'), texts.join('\n\n----\n\n'));
}

/** As small as it gets: it is done once, and sent with every first load. */
function compress() {
  for (const name of readdirSync(assets)) {
    if (!/\.(js|css|svg)$/.test(name)) continue;
    const bytes = readFileSync(join(assets, name));
    const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
    writeFileSync(join(assets, `${name}.br`), brotliCompressSync(bytes, quality));
    writeFileSync(join(assets, `${name}.gz`), gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION }));
  }
}
