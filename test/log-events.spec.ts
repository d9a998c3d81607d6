import { describe, expect, it } from 'vitest';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('..', import.meta.url));
const page = readFileSync(join(project, 'docs/logs.md'), 'utf8');
const sources = readdirSync(join(project, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.spec.ts'))
  .map((name) => readFileSync(join(project, 'src', name), 'utf8'));

describe('docs/logs.md', () => {
  const logged = sources.flatMap((source) =>
    [...source.matchAll(/\bevent: '([a-z-]+\.[a-z-]+)'/g)].map(([, event]) => event!),
  );

  it.each([...new Set(logged)].sort())('explains %s', (event) => {
    expect(page).toContain(`\`${event}\``);
  });
});
