import stringWidth from 'string-width';
import { printable, printableLines } from './printable.js';
import type { Terminal } from './terminal.js';

export type Cell = string | number | null | undefined;

const textOf = (cell: Cell): string =>
  cell === null || cell === undefined || cell === '' ? '–' : printable(`${cell}`);

const bold = (terminal: Terminal, text: string): string =>
  terminal.isInteractive ? `\u001b[1m${text}\u001b[22m` : text;

/** Without lines: what is copied from it, or cut by columns, is only what it says. */
export function table(terminal: Terminal, head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const lines = [head.map((name) => bold(terminal, name)), ...rows.map((row) => row.map(textOf))];
  const widths: number[] = [];
  for (const line of lines)
    for (const [nr, text] of line.entries()) widths[nr] = Math.max(widths[nr] ?? 0, stringWidth(text));
  const padded = (text: string, nr: number) => text + ' '.repeat(widths[nr]! - stringWidth(text));
  return lines.map((line) => line.map(padded).join('  ').trimEnd()).join('\n');
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
