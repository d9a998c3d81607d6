import { describe, expect, it } from 'vitest';
import { PassThrough } from 'node:stream';
import { forwardLines, type LineWriter } from './forward-lines.js';

class Log implements LineWriter {
  text = '';
  hasRoom = true;
  private readonly waiting: (() => void)[] = [];

  write(text: string): boolean {
    this.text += text;
    return this.hasRoom;
  }

  onceRoom(listener: () => void): void {
    this.waiting.push(listener);
  }

  tellRoom(): void {
    for (const listener of this.waiting.splice(0)) listener();
  }
}

function streams(log: Log, count: number): PassThrough[] {
  return Array.from({ length: count }, () => {
    const stream = new PassThrough();
    forwardLines(stream, log);
    return stream;
  });
}

const aTurn = () => new Promise((resolve) => setImmediate(resolve));

describe('the lines of several processes', () => {
  it('come whole, however they were cut', async () => {
    const log = new Log();
    const [one, two] = streams(log, 2) as [PassThrough, PassThrough];
    const euro = Buffer.from('a €\n');
    one.write(euro.subarray(0, 3)); // in the middle of a character
    await aTurn();
    two.write('b\nc');
    await aTurn();
    one.write(euro.subarray(3));
    await aTurn();
    two.write(' d\n');
    await aTurn();
    expect(log.text).toBe('b\na €\nc d\n');
  });

  it('end where a process ended in the middle of one', async () => {
    const log = new Log();
    const [one, two] = streams(log, 2) as [PassThrough, PassThrough];
    one.end('{"event":"ki');
    await aTurn();
    two.end('{}\n');
    await aTurn();
    expect(log.text).toBe('{"event":"ki\n{}\n');
  });

  it('are read no further while nobody takes them', async () => {
    const log = new Log();
    const [one] = streams(log, 1) as [PassThrough];
    log.hasRoom = false;
    one.write('a\n');
    await aTurn();
    one.write('b\n');
    await aTurn();
    expect(log.text).toBe('a\n');
    log.tellRoom();
    await aTurn();
    expect(log.text).toBe('a\nb\n');
  });
});
