import { describe, expect, it } from 'vitest';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const sources = fileURLToPath(new URL('../src', import.meta.url));
const files = readdirSync(sources, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.endsWith('.ts') && !name.endsWith('.spec.ts'),
);

const locks = /\bFOR (?:NO KEY UPDATE|UPDATE|KEY SHARE|SHARE)\b/g;
/** Before the text of a statement: what locks at its end locks once. */
const ofStatement = /\b(?:statement|perDay)\(\s*'[\w-]+',\s*(?:\(\s*of,?\s*\) =>\s*)?$/;

/**
 * Of each clause that locks rows, unless a whole statement ends with it: the word in front of its parentheses;
 * `a fragment` where those may be elsewhere.
 * @param source TypeScript whose statements are template literals
 */
function lockingSubqueries(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  return [...code.matchAll(locks)].flatMap(({ index }) => {
    const at = openingBefore(code, index);
    if (/^\(\s*(?:SELECT|WITH)\b/.test(code.slice(at))) return [code.slice(0, at).match(/(\w+)\s*$/)?.[1] ?? 'none'];
    const line = code.slice(0, index).lastIndexOf(`'SELECT`);
    return ofStatement.test(code.slice(0, code[at] === '`' ? at : line)) ? [] : ['a fragment'];
  });
}

/** Where the innermost parenthesis that is open at `end` begins, or the statement. */
function openingBefore(code: string, end: number): number {
  let closed = 0;
  for (let at = end; at >= 0; at--) {
    if (code[at] === '`') return at;
    if (code[at] === ')') closed++;
    else if (code[at] === '(' && closed-- === 0) return at;
  }
  return 0;
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
    for (const lock of ['UPDATE', 'NO KEY UPDATE SKIP LOCKED', 'SHARE', 'KEY SHARE NOWAIT'])
      for (const select of ['SELECT', 'WITH x AS MATERIALIZED (SELECT) SELECT'])
        expect(
          lockingSubqueries(`\`UPDATE a FROM (${select} b FROM c WHERE d IN (1) LIMIT 1 FOR ${lock}) e\``),
        ).toEqual(['FROM']);
    expect(lockingSubqueries('const lockRows = `SELECT b FROM c FOR UPDATE`;')).toEqual(['a fragment']);
    expect(lockingSubqueries('`UPDATE a FROM (${rows} FOR UPDATE) e`')).toEqual(['a fragment']);
    expect(lockingSubqueries("statement('lock', `SELECT b FROM c FOR UPDATE`)")).toEqual([]);
    expect(lockingSubqueries("statement('lock', 'SELECT b FROM c FOR UPDATE')")).toEqual([]);
  });

  it.each(found)('in %s is executed once: %s', (_, before) => {
    expect(['MATERIALIZED', 'ARRAY', 'LATERAL']).toContain(before);
  });
});
