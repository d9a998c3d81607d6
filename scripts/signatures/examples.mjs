// The examples of docs/receiving.md, each run in its own language where that is installed.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { projectDirectory } from '../ready-to-run.mjs';
import { forgeriesOf } from './call.mjs';
import { isInstalled, VerifyingProgram } from './verifying-program.mjs';

const samples = fileURLToPath(new URL('samples/', import.meta.url));

/**
 * @typedef {object} Language
 * @property {string} name
 * @property {string} tag of its blocks in Markdown
 * @property {string} heading of its block
 * @property {import('./call.mjs').Scheme} scheme
 * @property {string} file that the example is written to
 * @property {string} runner that calls it
 * @property {() => boolean} isHere
 * @property {[string, ...string[]]} [compile] in the directory with both files
 * @property {[string, ...string[]]} run
 */

const python = { tag: 'python', file: 'example.py', runner: 'run.py', run: ['python3', 'run.py'] };
const hasPackage = () => spawnSync('python3', ['-c', 'import cryptography'], { stdio: 'ignore' }).status === 0;
const javaScript = { tag: 'js', file: 'example.mjs', runner: 'run.mjs', run: [process.execPath, 'run.mjs'] };

const languages = /** @type {Language[]} */ ([
  { name: 'JavaScript', heading: '## In JavaScript', scheme: 'v1', isHere: () => true, ...javaScript },
  { name: 'Python', heading: '## In Python', scheme: 'v1', isHere: () => isInstalled('python3'), ...python },
  {
    name: 'Java',
    tag: 'java',
    heading: '## In Java',
    scheme: 'v1',
    file: 'Webhooks.java',
    runner: 'Run.java',
    isHere: () => isInstalled('javac'),
    compile: ['javac', 'Webhooks.java', 'Run.java'],
    run: ['java', 'Run'],
  },
  {
    name: 'Go',
    tag: 'go',
    heading: '## In Go',
    scheme: 'v1',
    file: 'example.go',
    runner: 'run.go',
    isHere: () => isInstalled('go', ['version']),
    compile: ['go', 'build', '-o', 'run', 'example.go', 'run.go'],
    run: ['./run'],
  },
  {
    name: 'PHP',
    tag: 'php',
    heading: '## In PHP',
    scheme: 'v1',
    file: 'example.php',
    runner: 'run.php',
    isHere: () => isInstalled('php'),
    run: ['php', 'run.php'],
  },
  { name: 'JavaScript', heading: '## With a public key', scheme: 'v1a', isHere: () => true, ...javaScript },
  { name: 'Python', heading: '## With a public key', scheme: 'v1a', isHere: hasPackage, ...python },
]);

/**
 * @typedef {object} Example
 * @property {string} name of its language
 * @property {import('./call.mjs').Scheme} scheme
 * @property {(() => VerifyingProgram) | undefined} start undefined: the language is not installed
 */

/**
 * @typedef {object} Tried
 * @property {number} accepted of the genuine calls
 * @property {number} refused of the forged ones
 * @property {string[]} wrong in sentences
 */

/**
 * Compiles each, which may take a minute: meanwhile genuine calls would become too old.
 * @param {string} directory for what is compiled
 * @param {(line: string) => void} log
 * @returns {Example[]}
 */
export function makeExamples(directory, log) {
  const page = readFileSync(join(projectDirectory, 'docs/receiving.md'), 'utf8');
  return languages.map((language, nr) => {
    const { name, scheme } = language;
    if (!language.isHere()) return { name, scheme, start: undefined };
    log(`making the example in ${name} (${scheme}) …`);
    const where = join(directory, String(nr));
    make(language, exampleIn(page, language), where);
    const [program, ...words] = language.run;
    return { name, scheme, start: () => new VerifyingProgram(program, words, { cwd: where }) };
  });
}

/**
 * @param {Example} example
 * @param {object} what
 * @param {{ keys: import('./call.mjs').Keys, call: import('./call.mjs').Call }[]} what.genuine
 * @param {import('./call.mjs').Keys} what.otherKeys
 * @returns {Promise<Tried | undefined>} undefined: its language is not installed
 */
export async function tryExample({ name, scheme, start }, { genuine, otherKeys }) {
  if (!start) return undefined;
  const program = start();
  const tried = { accepted: 0, refused: 0, wrong: /** @type {string[]} */ ([]) };
  for (const { keys, call } of genuine) {
    const right = keys[scheme];
    if (await program.isGenuine(right, call)) tried.accepted += 1;
    else tried.wrong.push(`the example in ${name} refuses a genuine call (${scheme})`);
    for (const [forgery, forge] of forgeriesOf(scheme)) {
      const { key = right, ...forged } = forge(call, { right, other: otherKeys[scheme], scheme });
      if (!(await program.isGenuine(key, { ...call, ...forged }))) tried.refused += 1;
      else tried.wrong.push(`the example in ${name} accepts a forged call (${scheme}): ${forgery}`);
    }
  }
  await program.stop();
  return tried;
}

/**
 * @param {string} page
 * @param {Language} language
 */
function exampleIn(page, { heading, tag, name }) {
  const section = page.split(/^(?=## )/m).find((each) => each.startsWith(`${heading}\n`)) ?? '';
  const [, example] = new RegExp(`^\`\`\`${tag}\\n([^]*?)^\`\`\``, 'm').exec(section) ?? [];
  if (example === undefined) throw new Error(`docs/receiving.md has no example in ${name} below "${heading}".`);
  return tag === 'php' ? `<?php\n${example}` : example;
}

/**
 * @param {Language} language
 * @param {string} example
 * @param {string} directory
 */
function make({ name, file, runner, compile }, example, directory) {
  mkdirSync(directory);
  writeFileSync(join(directory, file), example);
  copyFileSync(join(samples, runner), join(directory, runner));
  if (compile) {
    const [program, ...words] = compile;
    const { status, stderr } = spawnSync(program, words, { cwd: directory, encoding: 'utf8' });
    if (status !== 0) throw new Error(`The example in ${name} cannot be compiled:\n${stderr}`);
  }
}
