import { afterEach, beforeEach, describe, expect, it, vi, type Mock } from 'vitest';
import { BackgroundWriter, longestBacklog, type Sink } from './background-writer.js';

type Spy = Mock<() => void>;

/** Takes as many bytes as it has room for, then refuses with `code`. */
class Disk implements Sink {
  text = '';
  room = Infinity;
  code = 'ENOSPC';

  write(bytes: Buffer, done: (error: NodeJS.ErrnoException | null, written: number) => void): void {
    queueMicrotask(() => {
      try {
        done(null, this.writeSync(bytes));
      } catch (error) {
        done(error as NodeJS.ErrnoException, 0);
      }
    });
  }

  writeSync(bytes: Buffer): number {
    if (this.room === 0) throw Object.assign(new Error(), { code: this.code });
    const written = bytes.subarray(0, this.room);
    this.text += written.toString();
    this.room -= written.length;
    return written.length;
  }
}

describe('what writes the log', () => {
  let disk: Disk;
  let writer: BackgroundWriter;
  let dropped: string[];
  const [onWritten, onGone, onFlushed] = Array.from({ length: 3 }, () => vi.fn<() => void>()) as [Spy, Spy, Spy];

  beforeEach(() => {
    vi.useFakeTimers();
    for (const each of [onWritten, onGone, onFlushed]) each.mockReset();
    disk = new Disk();
    dropped = [];
    writer = new BackgroundWriter(disk, { onDropped: (text) => dropped.push(text), onWritten, onGone });
  });
  afterEach(() => void vi.useRealTimers());

  it('writes all in order', async () => {
    for (const line of ['a\n', 'é\n', 'c\n']) expect(writer.write(line)).toBe(true);
    await vi.advanceTimersByTimeAsync(0);
    expect(disk.text).toBe('a\né\nc\n');
    expect(onWritten).toHaveBeenCalled();
  });

  it('goes on with the line that it had begun when a full disk gets room', async () => {
    disk.room = 3;
    writer.write('first\n');
    writer.write('second\n');
    await vi.advanceTimersByTimeAsync(5000);
    expect(disk.text).toBe('fir');
    disk.room = Infinity;
    await vi.advanceTimersByTimeAsync(1000);
    expect(disk.text).toBe('first\nsecond\n');
  });

  it('drops what is more than may wait, says when there is room, and writes again without being told to', async () => {
    disk.room = 0;
    const line = `${'x'.repeat(99)}\n`.repeat(10_000);
    let written = 0;
    while (dropped.length === 0) {
      writer.write(line);
      written += line.length;
    }
    await vi.advanceTimersByTimeAsync(5000);
    expect([dropped, written - line.length <= longestBacklog]).toEqual([[line], true]);
    expect([writer.write(line), onWritten.mock.calls.length]).toEqual([false, 0]);
    disk.room = Infinity;
    await vi.advanceTimersByTimeAsync(1000);
    expect([disk.text.length, onWritten.mock.calls.length]).toEqual([written - line.length, 1]);
    expect(writer.write('more\n')).toBe(true);
  });

  it.each(['ENOSPC', 'EIO', 'EDQUOT'])('ends without it where it cannot be written (%s)', async (code) => {
    Object.assign(disk, { room: 0, code });
    writer.write('a\n');
    await vi.advanceTimersByTimeAsync(0);
    writer.write('b\n');
    writer.flush(onFlushed);
    expect(onFlushed).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1000);
    expect(onFlushed).toHaveBeenCalled();
    writer.end('last\n', Infinity);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(disk.text).toBe('');
  });

  it('writes at its end all that waits and what is written last, and nothing after that', async () => {
    Object.assign(disk, { room: 1, code: 'EAGAIN' });
    writer.write('a\n');
    await vi.advanceTimersByTimeAsync(0);
    writer.write('b\n');
    disk.room = Infinity;
    writer.end('last\n', 0);
    writer.write('more\n');
    await vi.advanceTimersByTimeAsync(1000);
    expect(disk.text).toBe('a\nb\nlast\n');
  });

  it('gives up a pipe that is full at its end after its time', () => {
    Object.assign(disk, { room: 0, code: 'EAGAIN' });
    writer.end('last\n', 0);
    expect(disk.text).toBe('');
  });

  it('counts that time by a clock that nobody sets', () => {
    vi.useRealTimers();
    const setBack = vi.spyOn(Date, 'now').mockReturnValue(0);
    let tries = 0;
    disk.writeSync = () => {
      throw Object.assign(new Error('full'), { code: ++tries < 1000 ? 'EAGAIN' : 'EIO' });
    };
    writer.end('last\n', performance.now() + 20);
    setBack.mockRestore();
    expect(tries).toBeLessThan(1000);
  });

  it('takes all and keeps nothing once nobody can read it', async () => {
    Object.assign(disk, { room: 0, code: 'EPIPE' });
    writer.write('a\n');
    writer.flush(onFlushed);
    await vi.advanceTimersByTimeAsync(0);
    expect([onGone.mock.calls.length, onFlushed.mock.calls.length]).toEqual([1, 1]);
    disk.room = Infinity;
    expect(writer.write('x'.repeat(longestBacklog + 1))).toBe(true);
    writer.end('last\n', Infinity);
    expect([disk.text, dropped]).toEqual(['', []]);
  });
});
