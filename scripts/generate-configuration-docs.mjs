// Writes docs/configuration.md from the settings' schema; with --check it only says whether the file is up to date.
import { loadTypeScript, writeOrCheck } from './generated.mjs';

const source = 'src/config/settings.ts';
const { settingsSchema } = await loadTypeScript(source);
await writeOrCheck('docs/configuration.md', render(settingsSchema), { source, command: 'docs:configuration' });

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
