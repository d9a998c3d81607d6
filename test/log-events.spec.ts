import { describe, expect, it } from 'vitest';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('..', import.meta.url));
const page = readFileSync(join(project, 'docs/logs.md'), 'utf8');
const sources = readdirSync(join(project, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.spec.ts'))
  .map((name) => readFileSync(join(project, 'src', name), 'utf8'));

/** Every text that is given as `event`, with all of its alternatives. */
const given = sources.flatMap((source) =>
  [...source.matchAll(/\bevent\s*[:=]\s*([^,;{}]*)/g)].map(([, value]) => value!),
);
const namesIn = (text: string, quote: string) =>
  [...text.matchAll(new RegExp(`${quote}([a-z-]+\\.[a-z-]+)${quote}`, 'g'))].map(([, name]) => name!);

describe('docs/logs.md', () => {
  const logged = given.flatMap((value) => namesIn(value, "'"));

  it('can be compared: the program writes the names of events out', () => {
    expect(logged.length).toBeGreaterThan(150);
    expect(given.filter((value) => value.includes('`'))).toEqual([]);
  });

  it.each([...new Set(logged)].sort())('explains %s', (event) => {
    expect(page).toContain(`\`${event}\``);
  });

  it('explains nothing that is not logged', () => {
    const rows = page
      .slice(0, page.indexOf('\n## The audit log'))
      .split('\n')
      .filter((line) => line.startsWith('| `'));
    const explained = rows.flatMap((row) => namesIn(row.split(' | ')[0]!, '`'));
    expect(explained.length).toBeGreaterThan(100);
    expect(explained.filter((event) => !sources.some((source) => source.includes(`'${event}'`)))).toEqual([]);
  });
});
