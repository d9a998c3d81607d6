// Writes docs/configuration.md from the settings' schema; with --check it only says whether the file is up to date.
import { transform } from 'esbuild';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatted } from './formatted.mjs';
import { projectDirectory } from './ready-to-run.mjs';

/** Of `src/config`, those that the schema is made of. */
const modules = [
  'settings',
  'server-settings',
  'access-settings',
  'delivery-settings',
  'outer-settings',
  'settings-together',
  'setting-types',
];
const target = join(projectDirectory, 'docs/configuration.md');
const document = await formatted(target, render(await readSchema()));
if (!process.argv.includes('--check')) {
  writeFileSync(target, document);
} else if (readIfThere(target) !== document) {
  console.error('docs/configuration.md is not what src/config/settings.ts says. Run: npm run docs:configuration');
  process.exitCode = 1;
}

/**
 * The schema is TypeScript; it is compiled by itself, so that the document does not wait for a build.
 * @returns {Promise<import('zod').ZodObject>}
 */
async function readSchema() {
  // Inside the project, where `zod` is found.
  const directory = mkdtempSync(join(projectDirectory, 'node_modules/.settings-'));
  try {
    writeFileSync(join(directory, 'package.json'), '{ "type": "module" }');
    for (const name of modules) {
      const source = readFileSync(join(projectDirectory, `src/config/${name}.ts`), 'utf8');
      const { code } = await transform(source, { loader: 'ts', target: 'es2023' });
      writeFileSync(join(directory, `${name}.js`), code);
    }
    return (await import(join(directory, 'settings.js'))).settingsSchema;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** @param {import('zod').ZodObject} schema */
function render(schema) {
  const rows = Object.entries(schema.shape).map(([name, setting]) => {
    const described = /** @type {import('zod').ZodType} */ (setting);
    const preset = described.safeParse(undefined);
    const value = preset.success && preset.data !== undefined ? written(preset.data) : '';
    return `| \`${name}\` | ${value === '' ? '–' : `\`${value}\``} | ${cell(described.description ?? '')} |`;
  });
  return [
    '<!-- Generated from src/config/settings.ts by `npm run docs:configuration`. -->',
    '# Configuration',
    '',
    'Heraut reads these environment variables, once, at the start. It refuses to start when one is wrong, and names all that are.',
    'An empty value counts as not set.',
    '',
    '| name | default | meaning |',
    '| --- | --- | --- |',
    ...rows,
    '',
  ].join('\n');
}

/**
 * As an operator would write it.
 * @param {unknown} value
 */
function written(value) {
  if (Array.isArray(value)) return value.join();
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** @param {string} text */
function cell(text) {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

/** @param {string} path */
function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
