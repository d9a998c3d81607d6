import { readFile } from 'node:fs/promises';
import { textOf } from '../infra/utf8-text.js';
import { CommandFailure, exits } from './exits.js';
import type { Session } from './session.js';

/**
 * The text of a file that a command was given; `-` is standard input.
 * @throws {CommandFailure} when it cannot be read
 */
export async function readGiven({ terminal }: Session, file: string): Promise<string> {
  try {
    return textOf(file === '-' ? await terminal.readAll() : await readFile(file));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CommandFailure(exits.wrongUse, `${file} cannot be read: ${code ?? message}.`);
  }
}
