import { describe, expect, it } from 'vitest';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('..', import.meta.url));
const read = (name: string) => readFileSync(join(project, name), 'utf8');
const below = (folder: string, ends: RegExp) =>
  readdirSync(join(project, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => ends.test(name))
    .map((name) => join(folder, name));

const pages = [
  ...readdirSync(project).filter((name) => name.endsWith('.md')),
  ...below('docs', /\.md$/),
  'web/README.md',
];
const others = [...below('src', /\.ts$/), ...below('docker', /\.(?:yml|json)$/)];
const sources = ['migrations', 'scripts', 'test', 'web/src', 'web/e2e'].flatMap((folder) =>
  below(folder, /\.(?:tsx?|mjs|css)$/),
);

describe('the documentation', () => {
  it('leads from each link to a page, and to a place in it, that is there', () => {
    const links = [...pages.flatMap(linksOfPage), ...others.flatMap(linksOfSource)];
    expect(links.length).toBeGreaterThan(200);
    expect(links.filter(({ page, place }) => !isThere(page, place))).toEqual([]);
  });

  it('names the subject of each sentence first, in comments and texts as well', () => {
    const openings = [...pages, ...others, ...sources].flatMap(openingsWithoutNoun);
    expect(openings.filter(isQuestion).length).toBeGreaterThan(5);
    expect(openings.filter((opening) => !isQuestion(opening))).toEqual([]);
  });
});

describe('what an operator does about the database', () => {
  const between = (begins: string, ends: string, page = read('docs/running.md')) =>
    page.slice(page.indexOf(begins)).split(ends, 1)[0]!;

  it('stops the runs of cron as well before a restore, and begins them again when all is done', () => {
    const steps = between('**To restore a backup**', '\n## ').split(/^\d\. /m);
    expect(steps.flatMap((step, nr) => (step.includes('cron') ? [nr] : []))).toEqual([1, 5]);
  });

  it('is as much in the runbook, after a standby took over that was behind, as on the page it leads to', () => {
    expect(between('A failover that happens by itself', '\n\n')).toContain('do 1 and 3 to 5 all the same');
    const inRunbook = between('**`catalogue.went-back` in the log**', '\n- ', read('docs/operations.md'));
    expect(inRunbook).toContain('steps 1 and 3 to 5 of [running.md](running.md#backup)');
  });

  it('reaches each place that has a text after it was erased, the logs of Postgres among them', () => {
    const left = between('Left to you:', 'These go by themselves:');
    for (const place of ['backups', 'write-ahead log', 'exported', '`delivery.attempted`', 'log_parameter_max_length'])
      expect(left).toContain(place);
  });
});

describe('the list of actions of the audit log, in the console', () => {
  it('has those of the documentation, in the order of their names', () => {
    const [, list] = /knownActions = \[([^\]]*)\]/.exec(read('web/src/pages/audit/entries.ts'))!;
    const offered = [...list!.matchAll(/'([^']+)'/g)].map(([, action]) => action);
    const documented = actionsOf(read('docs/logs.md'));
    expect(documented.length).toBeGreaterThan(30);
    expect(offered).toEqual(documented.toSorted());
  });
});

describe('a comment', () => {
  it('is no wider than the code: the formatter wraps that alone', () => {
    const wide = [...others, ...sources].filter((name) => /\.(?:tsx?|mjs)$/.test(name)).flatMap(wideComments);
    expect(wide).toEqual([]);
  });
});

describe('an upgrade with Docker Compose', () => {
  it('leaves the other roles as they are where the first one does not come up', () => {
    const [loop] = /^for role in .*compose up.*$/m.exec(read('docs/running.md'))!;
    const called = execFileSync('sh', ['-c', `compose() { echo "$*"; false; }\n${loop}`], { encoding: 'utf8' });
    expect(called.match(/\w+$/gm)).toEqual(['dispatcher']);
  });
});

/** `.changed` is of the subject that the first action of its row names. */
function actionsOf(text: string): string[] {
  const [, table] = /^\| action +\|.*\n\|.*\n((?:\|.*\n)+)/m.exec(text)!;
  return table!.split('\n').flatMap((row) => {
    const names = [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
    return names.map((name) => (name.startsWith('.') ? `${names[0]!.split('.')[0]}${name}` : name));
  });
}

/** Those of types may be wider: they cannot be wrapped everywhere. */
const wideComments = (from: string): string[] =>
  read(from)
    .split('\n')
    .filter(
      (line) =>
        line.length > 120 &&
        /^\s*(?:\/\/|\/?\*)/.test(line) &&
        !/@(?:type|typedef|property|param|returns)\b/.test(line),
    )
    .map((line) => `${from}: ${line}`);

interface Opening {
  from: string;
  sentence: string;
}

const fromPronoun = /(?<![\w$])W(?:ho|hat|ie|at)(?:ever)?(?![\w$])[^]*?(?:[.?!](?![\w/])|\n\s*\n|\*\/|$)/g;

/**
 * Sentences that open with a pronoun in place of a noun: their reader waits for the subject (CONTRIBUTING.md). The
 * console is in Dutch too.
 */
const openingsWithoutNoun = (from: string): Opening[] =>
  [...read(from).matchAll(fromPronoun)].map(([sentence]) => ({ from, sentence }));

const isQuestion = ({ sentence }: Opening): boolean => sentence.endsWith('?');

interface Link {
  from: string;
  page: string;
  place?: string;
}

/** Within the project; links in code are none. */
function linksOfPage(from: string): Link[] {
  const text = read(from).replaceAll(/^ *```[^]*?^ *```/gm, '');
  return [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)].map(([, page, place]) => ({
    from,
    page: page ? join(dirname(from), page) : from,
    place,
  }));
}

/**
 * `docs/PAGE.md`, and `docs/PAGE.md#PLACE`, in comments, messages and settings. Links that are put together at run time
 * have their own tests.
 */
const linksOfSource = (from: string): Link[] =>
  [...read(from).matchAll(/\b(docs\/[\w/-]+\.md)(?:#([\w-]+)(?![\w${-]))?/g)].map(([, page, place]) => ({
    from,
    page: page!,
    place,
  }));

function isThere(page: string, place: string | undefined): boolean {
  if (!existsSync(join(project, page))) return false;
  return place === undefined || placesOf(page).has(place);
}

/** As GitHub makes them of headings, and those that are named. */
function placesOf(page: string): Set<string> {
  const text = read(page).replaceAll(/^ *```[^]*?^ *```/gm, '');
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!.replaceAll(/<[^>]*>/g, ''));
  const named = [...text.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id!);
  const slugs = headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set([...slugs, ...named]);
}
