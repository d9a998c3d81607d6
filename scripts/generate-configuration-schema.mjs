// Writes docs/heraut.schema.json, for editors, from the schema that configuration files are read with; with --check it only says whether the
// file is up to date.
import { build } from 'esbuild';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatted } from './formatted.mjs';
import { projectDirectory } from './ready-to-run.mjs';

const target = join(projectDirectory, 'docs/heraut.schema.json');
const document = await formatted(target, JSON.stringify(await readSchema()));
if (!process.argv.includes('--check')) {
  writeFileSync(target, document);
} else if (readIfThere(target) !== document) {
  console.error('docs/heraut.schema.json is not what src/configuration-file says. Run: npm run docs:schema');
  process.exitCode = 1;
}

/** The schema is TypeScript; it is joined by itself, so that the file does not wait for a build. */
async function readSchema() {
  // Inside the project, where packages are found.
  const directory = mkdtempSync(join(projectDirectory, 'node_modules/.schema-'));
  try {
    await build({
      absWorkingDir: projectDirectory,
      entryPoints: ['src/configuration-file/editor-schema.ts'],
      outfile: join(directory, 'editor-schema.mjs'),
      bundle: true,
      packages: 'external',
      platform: 'node',
      format: 'esm',
      logLevel: 'warning',
    });
    return (await import(join(directory, 'editor-schema.mjs'))).editorSchema();
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** @param {string} path */
function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
