import { describe, expect, it } from 'vitest';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { rawText, unexplained } from './support/unexplained-statements.js';

const project = fileURLToPath(new URL('..', import.meta.url));
const read = (name: string) => readFileSync(`${project}${name}`, 'utf8');
const filesOf = (folder: string) =>
  readdirSync(`${project}${folder}`, { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`);
const sources = filesOf('src').filter((name) => name.endsWith('.ts') && !name.endsWith('.spec.ts'));
/**
 * Those that have statements explained: with what they name or import, they show its plan or the pages that it looks
 * at.
 */
const planSpecs = filesOf('test/integration').filter(
  (name) => name.endsWith('.spec.ts') && /\bEXPLAIN |\bpagesRead/.test(read(name)),
);

interface Made {
  name: string;
  file: string;
  /** The constant, function or class that it is made in, at the top of its file. */
  by: string;
}

interface Call extends Omit<Made, 'name'> {
  /** Undefined: what it is made in is given the name. */
  name: string | undefined;
  isExported: boolean;
}

/** Where a function is called with a name as its first argument. */
function callsOf(maker: string, files: readonly string[]): Call[] {
  return files.flatMap((file) => {
    const text = read(file);
    const calls = text.matchAll(new RegExp(`\\b(?<!function )${maker}\\(\\s*(?:(['\`])(.+?)\\1|name\\b)`, 'g'));
    return [...calls].map((call) => {
      const before = text.slice(0, call.index);
      const [, exported, by] = [...before.matchAll(/^(export )?(?:async )?(?:const|function|class) (\w+)/gm)].at(-1)!;
      // Of a statement for each of several, such as `find-meant-${route}`.
      return { name: call[2]?.replaceAll(/\$\{.*?\}/g, '*'), file, by: by!, isExported: exported !== undefined };
    });
  });
}

/** All that `statement` is called with, in functions that are given the name too. */
function statementsMade(): Made[] {
  const makers = new Map<string, readonly string[]>([['statement', sources]]);
  const made: Made[] = [];
  for (const [maker, files] of makers)
    for (const { name, file, by, isExported } of callsOf(maker, files))
      if (name === undefined) makers.set(by, isExported ? sources : [file]);
      else made.push({ name, file, by });
  return made;
}

/** Names of statements, and `file#export`, that the plan specs have. */
function namedInPlanSpecs(): ReadonlySet<string> {
  const named = new Set<string>();
  for (const text of planSpecs.map(read)) {
    for (const [, name] of text.matchAll(/'([a-z]+(?:-[a-z]+)*)'/g)) named.add(name!);
    for (const [, list, whole, file] of text.matchAll(
      /import (?:\{([^}]*)\}|\* as (\w+)) from '\.\.\/\.\.\/(src\/[^']+)\.js';/g,
    )) {
      const used = whole
        ? [...text.matchAll(new RegExp(`\\b${whole}\\.(\\w+)`, 'g'))].map(([, name]) => name!)
        : list!.split(',').map((each) => each.trim().split(' as ')[0]!);
      for (const each of used) named.add(`${file}.ts#${each}`);
    }
  }
  return named;
}

/**
 * Whether a file runs text that is no statement with a name, or has TypeORM write it: no plan spec can know of it.
 * `postgres` and `ledger` take nothing but statements.
 */
function runsRawText(source: string): boolean {
  const calls = source.matchAll(
    /\b(?!postgres\b|ledger\b|super\b)\w+\.query(?:<[^()]*?>)?\(\s*(?!\w+\.text\b)(\w+\b)?/g,
  );
  const isRaw = ([, given]: RegExpExecArray) => given === undefined || !source.includes(`const ${given} = statement(`);
  const written =
    /\.(?:getRepository|(?:find|exists|count|sum|insert|update|upsert|save|delete|remove)\w*)\(\s*\w+Entity\b/;
  return [...calls].some(isRaw) || /\.createQueryBuilder\(/.test(source) || written.test(source);
}

describe('the statements of the program', () => {
  const made = statementsMade();
  const named = namedInPlanSpecs();
  const isExplained = ({ name, file, by }: Made) => named.has(name) || named.has(`${file}#${by}`);
  const excepted = Object.values(unexplained).flat();

  it('are found in its source', () => {
    expect(made.length).toBeGreaterThan(250);
    const names = new Set(made.map(({ name }) => name));
    // Directly, by the day, by a function that is given the name, and for each of several.
    const some = ['accept', 'settle', 'subscriptions-ending', 'measure-size', 'find-meant-*'];
    expect(some.filter((name) => !names.has(name))).toEqual([]);
  });

  it('are explained by a spec, or said to be cheap for a reason', () => {
    const neither = made.filter((each) => !isExplained(each) && !excepted.includes(each.name));
    expect(neither.map(({ name, file }) => `${name} (${file})`).join('\n')).toBe('');
  });

  it('are not excepted where they are explained, or there are none', () => {
    const needed = new Set(made.filter((each) => !isExplained(each)).map(({ name }) => name));
    expect(excepted.filter((name) => !needed.has(name))).toEqual([]);
    expect(excepted.filter((name, nr) => excepted.indexOf(name) !== nr)).toEqual([]);
  });

  it('are told from text that has no name', () => {
    for (const raw of [
      'manager.query(`SELECT`)',
      "this.postgres.dataSource.query<[{ at: Date }[], number]>(\n  'SELECT')",
      "const find = 'SELECT'; connection.query(find)",
      'manager.findOneBy(ChannelEntity, { id })',
      'dataSource.getRepository(ChannelEntity)',
    ])
      expect([raw, runsRawText(raw)]).toEqual([raw, true]);
    for (const named of [
      'this.postgres.query<{ id: string }>(find)',
      'manager.query(find.text, valuesOf(find, values))',
      "const find = statement('find', 'SELECT'); connection.query<Row>(find)",
    ])
      expect([named, runsRawText(named)]).toEqual([named, false]);
  });

  it('are all there is, but for the text of some files that have a reason', () => {
    const excepted = Object.values(rawText).flat();
    expect(sources.filter((file) => runsRawText(read(file))).toSorted()).toEqual(excepted.toSorted());
  });
});
