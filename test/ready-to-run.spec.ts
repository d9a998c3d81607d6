import { afterAll, describe, expect, it } from 'vitest';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from './support/eventually.js';

const project = fileURLToPath(new URL('..', import.meta.url));
const runtime = { 'node_modules/runtime': { version: '1.0.0' } };
const builder = { 'node_modules/builder': { version: '1.0.0', dev: true } };

/** Installs all packages; without the word --include=dev those that run the program, as npm in production. */
const npm = `#!${process.execPath}
const { appendFileSync, mkdirSync, readFileSync, writeFileSync } = require('node:fs');
appendFileSync('calls-of-npm', process.argv.slice(2).join(' ') + '\\n');
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const wanted = Object.entries(packages).filter(([, { dev }]) => !dev || process.argv.includes('--include=dev'));
mkdirSync('node_modules/typescript/bin', { recursive: true });
writeFileSync('node_modules/typescript/bin/tsc', '');
writeFileSync('node_modules/.package-lock.json', JSON.stringify({ packages: Object.fromEntries(wanted) }));
`;
/** Of the fake tree: the second step of its build. It needs a package that is not needed to run the program. */
const bundle = `
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
if (!readFileSync('node_modules/.package-lock.json', 'utf8').includes('builder')) throw new Error('no package builder');
const directory = process.argv[2];
const text = readFileSync('src/text', 'utf8');
mkdirSync(directory, { recursive: true });
writeFileSync(directory + '/program.js', 'console.log(' + JSON.stringify(text) + ')');
if (text === 'wrong') throw new Error('a mistake');
`;
/** Likewise, of the console. */
const page = `
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
const directory = 'web/' + process.argv[3];
mkdirSync(directory, { recursive: true });
writeFileSync(directory + '/index.html', readFileSync('src/text', 'utf8'));
`;

describe('scripts that make themselves ready', () => {
  const trees: string[] = [];
  afterAll(() => {
    for (const tree of trees) rmSync(tree, { recursive: true });
  });

  it('install what the build needs where NODE_ENV is production', async () => {
    const tree = freshClone();
    expect(await run(tree, 'scripts/run-program.mjs', 'program.js')).toMatchObject({ status: 0, stdout: 'first\n' });
    expect(callsOfNpm(tree)).toEqual([expect.stringContaining('--include=dev')]);
  });

  it('install nothing where the program is built and what only its build needs was removed', async () => {
    const tree = freshClone();
    await run(tree, 'scripts/run-program.mjs', 'program.js');
    write(tree, 'node_modules/.package-lock.json', JSON.stringify({ packages: runtime }));
    const before = callsOfNpm(tree);
    expect(await run(tree, 'scripts/run-program.mjs', 'program.js')).toMatchObject({ status: 0, stdout: 'first\n' });
    expect(callsOfNpm(tree)).toEqual(before);
  });

  it('install again where the program is built and a package that runs it is not there', async () => {
    const tree = freshClone();
    await run(tree, 'scripts/run-program.mjs', 'program.js');
    write(tree, 'node_modules/.package-lock.json', JSON.stringify({ packages: builder }));
    expect(await run(tree, 'scripts/run-program.mjs', 'program.js')).toMatchObject({ status: 0 });
    expect(callsOfNpm(tree)).toHaveLength(2);
  });

  it('install once where several are started at the same time', async () => {
    const tree = freshClone();
    const runs = [1, 2, 3].map(() => run(tree, 'scripts/run-program.mjs', 'program.js'));
    expect((await Promise.all(runs)).map(({ stdout }) => stdout)).toEqual(['first\n', 'first\n', 'first\n']);
    expect(callsOfNpm(tree)).toHaveLength(1);
    expect(existsSync(join(tree, '.heraut-lock'))).toBe(false);
  });

  it.each([
    ['empty, as on a disk that was full', '', 60],
    ['of a process that is gone', '4194304', 0],
    ['of a process that does something else by now', String(process.pid), 2 * 3600],
  ])('take a lock that was left behind: %s', async (_, holder, seconds) => {
    const tree = freshClone();
    leaveLock(tree, holder, seconds);
    const runs = [1, 2, 3].map(() => run(tree, 'scripts/run-program.mjs', 'program.js'));
    expect((await Promise.all(runs)).map(({ stdout }) => stdout)).toEqual(['first\n', 'first\n', 'first\n']);
    expect(callsOfNpm(tree)).toHaveLength(1);
    expect(readdirSync(tree).filter((name) => name.startsWith('.heraut-lock'))).toEqual([]);
  });

  it('take a lock that has their own number, in a container where numbers come again', async () => {
    const tree = freshClone();
    write(
      tree,
      'main.mjs',
      `import fs from 'node:fs'; fs.writeFileSync('.heraut-lock', String(process.pid));
      await import('./scripts/build.mjs');`,
    );
    write(tree, 'node_modules/typescript/bin/tsc', '');
    write(tree, 'node_modules/.package-lock.json', JSON.stringify({ packages: { ...runtime, ...builder } }));
    expect(await run(tree, 'main.mjs')).toMatchObject({ status: 0 });
  });

  it('say for which process they wait, and which file to delete', async () => {
    const tree = freshClone();
    leaveLock(tree, String(process.pid), 0);
    const waiting = spawn(process.execPath, ['scripts/build.mjs'], { cwd: tree });
    let said = '';
    waiting.stderr.on('data', (text: Buffer) => (said += text.toString()));
    await eventually(() => said.includes('\n'), 'it to say so');
    waiting.kill();
    await once(waiting, 'close');
    expect(said).toMatch(new RegExp(`^waiting for process ${process.pid}, .* delete .*/\\.heraut-lock …\n$`));
  });

  it('end the steps of their build where a signal ends them, and leave nothing in the way of the next one', async () => {
    const tree = freshClone();
    await run(tree, 'scripts/run-program.mjs', 'program.js');
    write(tree, 'src/text', 'second');
    write(tree, 'node_modules/typescript/bin/tsc', 'console.error(`step ${process.pid}`); setInterval(() => {}, 1000)');
    mkdirSync(join(tree, 'dist.new.1'));
    const building = spawn(process.execPath, ['scripts/build.mjs'], { cwd: tree });
    let said = '';
    building.stderr.on('data', (text: Buffer) => (said += text.toString()));
    const ended = once(building, 'close'); // when the step has closed the standard error that they share
    await eventually(() => said.includes('\n'), 'the step to begin');
    building.kill('SIGTERM');
    expect(await ended).toEqual([null, 'SIGTERM']);
    expect(existsSync(join(tree, '.heraut-lock'))).toBe(false);
    write(tree, 'node_modules/typescript/bin/tsc', '');
    expect(await run(tree, 'scripts/run-program.mjs', 'program.js')).toMatchObject({ status: 0, stdout: 'second\n' });
    const built = [tree, join(tree, 'web')].flatMap((directory) => readdirSync(directory));
    expect(built.filter((name) => name.startsWith('dist'))).toEqual(['dist', 'dist']);
  });

  it.each(['EXDEV', 'EBUSY'])('build into a directory that cannot be renamed (%s)', async (code) => {
    const tree = freshClone();
    await run(tree, 'scripts/run-program.mjs', 'program.js');
    write(tree, 'src/text', 'second');
    write(tree, 'dist/of-a-former-build', '');
    write(
      tree,
      'no-rename.mjs',
      `import fs from 'node:fs'; import { syncBuiltinESMExports } from 'node:module';
      fs.renameSync = () => { throw Object.assign(new Error('cannot be renamed'), { code: '${code}' }); };
      syncBuiltinESMExports();`,
    );
    expect(await run(tree, '--import', './no-rename.mjs', 'scripts/build.mjs')).toMatchObject({ status: 0 });
    const before = callsOfNpm(tree);
    expect(await run(tree, 'scripts/run-program.mjs', 'program.js')).toMatchObject({
      status: 0,
      stdout: 'second\n',
      stderr: '',
    });
    expect(callsOfNpm(tree)).toEqual(before);
    expect(readFileSync(join(tree, 'web/dist/index.html'), 'utf8')).toBe('second');
    expect(readdirSync(join(tree, 'dist')).toSorted()).toEqual(['.built-from', 'program.js']);
    expect(readdirSync(tree).filter((name) => name.startsWith('dist'))).toEqual(['dist']);
  });

  it('leave the program and the console that were built before where a build fails', async () => {
    const tree = freshClone();
    await run(tree, 'scripts/run-program.mjs', 'program.js');
    write(tree, 'src/text', 'wrong');
    expect(await run(tree, 'scripts/build.mjs')).toMatchObject({ status: 1 });
    expect(await run(tree, 'dist/program.js')).toMatchObject({ status: 0, stdout: 'first\n' });
    expect(readFileSync(join(tree, 'web/dist/index.html'), 'utf8')).toBe('first');

    write(tree, 'src/text', 'second');
    write(tree, 'dist/of-a-former-build', '');
    expect(await run(tree, 'scripts/run-program.mjs', 'program.js')).toMatchObject({ status: 0, stdout: 'second\n' });
    expect(readFileSync(join(tree, 'web/dist/index.html'), 'utf8')).toBe('second');
    expect(readdirSync(join(tree, 'dist')).toSorted()).toEqual(['.built-from', 'program.js']);
    expect(readdirSync(tree).filter((name) => name.startsWith('dist'))).toEqual(['dist']);
  });

  it('say how to install what is missing where a build fails without it', async () => {
    const tree = freshClone();
    write(tree, 'node_modules/typescript/bin/tsc', '');
    write(tree, 'node_modules/.package-lock.json', JSON.stringify({ packages: runtime }));
    const { status, stderr } = await run(tree, 'scripts/build.mjs');
    expect(status).toBe(1);
    expect(stderr).toContain('npm ci --include=dev');
  });

  /** A tree with the scripts of this one, and beside them as little as they need. */
  function freshClone(): string {
    const tree = mkdtempSync(join(tmpdir(), 'heraut-ready-'));
    trees.push(tree);
    for (const name of ['ready-to-run.mjs', 'project-lock.mjs', 'run-program.mjs', 'spawn-in-front.mjs', 'build.mjs'])
      cpSync(join(project, 'scripts', name), join(tree, 'scripts', name));
    write(tree, 'package.json', JSON.stringify({ type: 'module' }));
    const packages = { '': { dependencies: { runtime: '1.0.0' } }, ...runtime, ...builder };
    write(tree, 'package-lock.json', JSON.stringify({ packages }));
    write(tree, 'scripts/bundle.mjs', bundle);
    write(tree, 'web/build.mjs', page);
    write(tree, 'src/text', 'first');
    for (const name of [
      'web/src/x',
      'web/public/x',
      'web/index.html',
      'web/vite.config.ts',
      'web/tsconfig.json',
      'migrations/x',
      'licences/x',
      'scripts/licence-texts.mjs',
    ])
      write(tree, name, '');
    for (const name of ['tsconfig.json', 'tsconfig.build.json']) write(tree, name, '{}');
    for (const name of ['scripts/admin-openapi.mjs', 'scripts/unbundled-packages.mjs']) write(tree, name, '');
    write(tree, 'bin/npm', npm);
    write(tree, 'bin/package.json', '{}'); // CommonJS
    chmodSync(join(tree, 'bin/npm'), 0o755);
    return tree;
  }
});

function write(tree: string, path: string, text: string): void {
  mkdirSync(dirname(join(tree, path)), { recursive: true });
  writeFileSync(join(tree, path), text);
}

function leaveLock(tree: string, holder: string, secondsAgo: number): void {
  write(tree, '.heraut-lock', holder);
  const then = Date.now() / 1000 - secondsAgo;
  utimesSync(join(tree, '.heraut-lock'), then, then);
}

function callsOfNpm(tree: string): string[] {
  const file = join(tree, 'calls-of-npm');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

function run(tree: string, ...words: string[]): Promise<{ status: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, words, {
      cwd: tree,
      env: { ...process.env, NODE_ENV: 'production', PATH: `${join(tree, 'bin')}${delimiter}${process.env.PATH}` },
    });
    const output = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => (output.stdout += chunk));
    child.stderr.on('data', (chunk) => (output.stderr += chunk));
    child.once('error', reject);
    child.once('close', (status) => resolve({ status, ...output }));
  });
}
