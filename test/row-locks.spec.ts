import { describe, expect, it } from 'vitest';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const sources = fileURLToPath(new URL('../src', import.meta.url));
const files = readdirSync(sources, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.endsWith('.ts') && !name.endsWith('.spec.ts'),
);

/**
 * Of each `FOR UPDATE` within parentheses: the word in front of them.
 * @param source TypeScript whose statements are template literals
 */
function lockingSubqueries(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  const openings = [...code.matchAll(/FOR UPDATE/g)].map(({ index }) => openingBefore(code, index));
  return openings.flatMap((at) => (at === undefined ? [] : [code.slice(0, at).match(/(\w+)\s*$/)?.[1] ?? 'none']));
}

/** Where the innermost parenthesis that is open at `end` begins, within the statement. */
function openingBefore(code: string, end: number): number | undefined {
  let closed = 0;
  for (let at = end; at >= 0 && code[at] !== '`'; at--) {
    if (code[at] === ')') closed++;
    else if (code[at] === '(' && closed-- === 0) return /^\(\s*SELECT/.test(code.slice(at)) ? at : undefined;
  }
  return undefined;
}

// https://www.postgresql.org/docs/current/sql-select.html (LIMIT, The Locking Clause): a subquery that is joined may be
// executed once for each row of the other side, and then locks up to its LIMIT anew each time, passing over what the
// statement has changed. Such a plan is made where the table has one row, and stays cached while it grows.
describe('a subquery that locks rows', () => {
  const found = files.flatMap((file) =>
    lockingSubqueries(readFileSync(join(sources, file), 'utf8')).map((before) => [file, before] as const),
  );

  it('is found in the statements', () => {
    expect(found.length).toBeGreaterThan(20);
    expect(lockingSubqueries('`UPDATE a FROM (SELECT b FROM c WHERE d IN (1) LIMIT 1 FOR UPDATE) e`')).toEqual([
      'FROM',
    ]);
  });

  it.each(found)('in %s is executed once: %s', (_, before) => {
    expect(['MATERIALIZED', 'ARRAY', 'LATERAL']).toContain(before);
  });
});
