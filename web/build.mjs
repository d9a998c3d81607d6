// Builds the console into web/dist: the types of the admin API from its document, then the page and its files, each also compressed.
// Needs the compiled program (`nest build`). `--types` stops after the types, for an editor or a type check.
import openapiTS, { astToString } from 'openapi-typescript';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';
import { writeAdminOpenApi } from '../scripts/admin-openapi.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const assets = join(here, 'dist/assets');

await writeTypes();
if (!process.argv.includes('--types')) {
  await build({ root: here, configFile: join(here, 'vite.config.ts'), logLevel: 'warn' });
  compress();
}

async function writeTypes() {
  const document = JSON.parse(readFileSync(await writeAdminOpenApi(), 'utf8'));
  const types = astToString(await openapiTS(document, { alphabetize: true }));
  mkdirSync(join(here, 'generated'), { recursive: true });
  writeFileSync(
    join(here, 'generated/admin-api.d.ts'),
    `// Generated from the document of the admin API by web/build.mjs.\n${types}`,
  );
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
