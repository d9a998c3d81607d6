import Table from 'cli-table3';
import { printable, printableLines } from './printable.js';
import type { Terminal } from './terminal.js';

/** Without lines: what is copied from it, or cut by columns, is only what it says. */
const noLines = Object.fromEntries(
  [
    'top',
    'top-mid',
    'top-left',
    'top-right',
    'bottom',
    'bottom-mid',
    'bottom-left',
    'bottom-right',
    'left',
    'left-mid',
    'mid',
    'mid-mid',
    'right',
    'right-mid',
  ].map((name) => [name, '']),
);

export type Cell = string | number | null | undefined;

const textOf = (cell: Cell): string =>
  cell === null || cell === undefined || cell === '' ? '–' : printable(`${cell}`);

const bold = (terminal: Terminal, text: string): string =>
  terminal.isInteractive ? `\u001b[1m${text}\u001b[22m` : text;

export function table(terminal: Terminal, head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const drawn = new Table({
    head: head.map((name) => bold(terminal, name)),
    chars: { ...noLines, middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  drawn.push(...rows.map((row) => row.map(textOf)));
  return withoutTrailingSpace(drawn.toString());
}

/** Names and values, one a line; those that are undefined are left out. */
export function fields(terminal: Terminal, entries: Readonly<Record<string, Cell>>): string {
  const shown = Object.entries(entries).filter(([, value]) => value !== undefined);
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${bold(terminal, name.padEnd(width))}  ${textOf(value)}`).join('\n');
}

/** A heading and what belongs to it. */
export const section = (terminal: Terminal, heading: string, text: string): string =>
  `\n${bold(terminal, heading)}\n${text}`;

/** Text of several lines that somebody else wrote, such as a body, moved in. */
export const block = (text: string): string => printableLines(text).replaceAll(/^/gm, '  ');

/** ISO 8601 as people read it, to the second, in UTC. */
export const moment = (time: string | null | undefined): string | undefined =>
  time === null || time === undefined ? undefined : time.replace('T', ' ').replace(/(\.\d+)?Z$/, 'Z');

const withoutTrailingSpace = (text: string): string => text.replaceAll(/ +$/gm, '');
