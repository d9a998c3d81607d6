import { describe, expect, it } from 'vitest';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isProblemClass, problemClasses } from '../src/nrc/problem-classes.js';

const project = fileURLToPath(new URL('..', import.meta.url));
const page = readFileSync(join(project, 'docs/errors.md'), 'utf8');
const sources = readdirSync(join(project, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.spec.ts'))
  .map((name) => readFileSync(join(project, 'src', name), 'utf8'));

/** Where the code of an error stands in the sources. */
const places = [
  /\bcode: '([a-z][\w-]*)'/g,
  /\brefused?\([^;]*?,\s*'([a-z][\w-]*)',/g,
  /\bnew (?:Conflict|Permission)Problem\(\s*'([a-z][\w-]*)'/g,
];
/** Of zod, not of ours. */
const foreign = ['custom', 'too_big'];

describe('docs/errors.md', () => {
  const answered = [
    ...Object.values(problemClasses).flatMap(({ codes }) => [...codes]),
    ...sources.flatMap((source) =>
      places.flatMap((place) => [...source.matchAll(place)].map(([, code]) => code ?? '')),
    ),
  ].filter((code) => !foreign.includes(code));

  it.each([...new Set(answered)].sort())('explains %s', (code) => {
    expect(page).toContain(`\`${code}\``);
  });

  it('explains no code that is never answered', () => {
    const explained = page
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .flatMap((line) =>
        [
          ...line
            .split('|')
            .slice(1, 3)
            .join()
            .matchAll(/`([a-z][a-z_-]*)`/g),
        ].map(([, code]) => code),
      );
    expect(explained.length).toBeGreaterThan(30);
    const unheardOf = explained.filter((code) => !sources.some((source) => source.includes(`'${code}'`)));
    expect(unheardOf).toEqual([]);
  });

  it.each([
    ['the problem', /\bsuper\(\s*'(\w+)',\s*\d+,\s*'([a-z][\w-]*)'/g],
    ['PermissionProblem', /\bnew (Permission)Problem\(\s*'([a-z][\w-]*)'/g],
    ['UnavailableProblem', /\bnew (Unavailable)Problem\([^;]*?,\s*'([a-z][\w-]*)'\)/g],
  ])('names each code on the page of its type: those that are given to %s', (_which, place) => {
    const typeOf: Record<string, string> = { Permission: 'PermissionDenied', Unavailable: 'ServiceUnavailable' };
    const given = sources.flatMap((source) =>
      [...source.matchAll(place)].map(([, name = '', code = '']) => ({ type: typeOf[name] ?? name, code })),
    );
    expect(given.length).toBeGreaterThan(1);
    const isNamed = ({ type, code }: { type: string; code: string }) =>
      isProblemClass(type) && (problemClasses[type].codes as readonly string[]).includes(code);
    expect(given.filter((each) => !isNamed(each))).toEqual([]);
  });

  it('lists no codes on the page of a type that has too many, which says so', () => {
    const given = sources.flatMap((source) => [...source.matchAll(/\bnew ConflictProblem\(\s*'([a-z][\w-]*)'/g)]);
    expect(given.length).toBeGreaterThan(10);
    expect(problemClasses.Conflict.codes).toEqual([]);
    expect(problemClasses.Conflict.explanation).toContain('one of many');
  });

  it('has a page for every type of problem that the sources name', () => {
    const types = sources.flatMap((source) =>
      [...source.matchAll(/extends ProblemError \{[^]*?\bsuper\('(\w+)'/g)].map(([, type]) => type ?? ''),
    );
    expect(types.length).toBeGreaterThan(10);
    expect(types.filter((type) => !isProblemClass(type))).toEqual([]);
  });
});
