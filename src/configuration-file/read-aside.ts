import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { InvalidParam } from '../infra/http/problem.js';
import { readConfigurationText, type ConfigurationText, type Remark } from './configuration-text.js';
import { sourcesBeside, sourcesGiven, type GivenValues } from './sources.js';

/**
 * The parser of YAML takes 1.8 s of CPU for a megabyte, and cannot be interrupted. A text that is shorter than this
 * takes 30 ms, less than a thread takes to begin.
 */
const longestHere = 16_384;

/** The whole program, built: a thread begins with a file of its own, wherever the build has put this one. */
const thread = join(dirname(createRequire(import.meta.url).resolve('#package.json')), 'dist/configuration-thread.js');

/** The task of a thread: nothing but data. */
export interface Reading {
  text: string;
  from: { file: string } | { values: GivenValues };
  /** Remarks of a server on the configuration: then the answer is where in the text those places are. */
  found?: readonly InvalidParam[];
}

type ReadParts = Omit<ConfigurationText, 'remarksOn'>;

/** As `ConfigurationText`; a large text is read again to find the places of problems. */
export interface TextReadAside extends ReadParts {
  remarksOn: (found: readonly InvalidParam[]) => Promise<Remark[]>;
}

/**
 * Reads a configuration as `readConfigurationText` does, and does not keep the event loop of this process from its
 * work.
 */
export async function readConfigurationAside(text: string, from: Reading['from']): Promise<TextReadAside> {
  if (text.length <= longestHere) {
    const { remarksOn, ...parts } = readConfigurationText(text, sourcesOf(from));
    return { ...parts, remarksOn: async (found) => remarksOn(found) };
  }
  const parts = await inThread<ReadParts>({ text, from });
  return { ...parts, remarksOn: (found) => inThread<Remark[]>({ text, from, found }) };
}

/** For the thread. */
export function readNow({ text, from, found }: Reading): ReadParts | Remark[] {
  const { remarksOn, ...parts } = readConfigurationText(text, sourcesOf(from));
  return found ? remarksOn(found) : parts;
}

const sourcesOf = (from: Reading['from']) => ('file' in from ? sourcesBeside(from.file) : sourcesGiven(from.values));

/** One after the other: what the parser makes of a text takes many times its memory. */
let before: Promise<unknown> = Promise.resolve();

function inThread<T>(reading: Reading): Promise<T> {
  const read = before.then(() => readInThread<T>(reading));
  before = read.catch(() => undefined); // the caller is told
  return read;
}

function readInThread<T>(reading: Reading): Promise<T> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(thread, { workerData: reading });
    worker.once('message', resolve).once('error', reject);
    worker.once('exit', (status) => reject(new Error(`The thread that reads a configuration ended with ${status}.`)));
  });
}
