import type { Readable } from 'node:stream';

const newline = 0x0a;

export interface LineWriter {
  /** Does not wait. @returns false when more lines should wait until there is room for them */
  write(lines: string): boolean;
  onceRoom(listener: () => void): void;
}

/**
 * Copies whole lines, so that those of several processes do not break into each other: a pipe that is full takes a
 * write in pieces. Reads no further while `to` is full: a process that is not read keeps its lines, within a bound of
 * its own.
 */
export function forwardLines(from: Readable, to: LineWriter): void {
  let begun: Buffer[] = [];
  from.on('data', (bytes: Buffer) => {
    const end = bytes.lastIndexOf(newline) + 1;
    const lines = end > 0 ? Buffer.concat([...begun, bytes.subarray(0, end)]) : undefined;
    begun = lines ? [bytes.subarray(end)] : [...begun, bytes];
    if (lines === undefined || to.write(lines.toString())) return;
    from.pause();
    to.onceRoom(() => from.resume());
  });
  from.once('end', () => {
    const rest = Buffer.concat(begun).toString();
    // Killed in the middle of a line: the next line must not be appended to it.
    if (rest !== '') to.write(`${rest}\n`);
  });
}
