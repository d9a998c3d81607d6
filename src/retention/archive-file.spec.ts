import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { link, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { nameFile, unfinishedFile, type OwnFile } from './archive-file.js';

const failing = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }));

describe('the file of a day in the archive', () => {
  const day = 20_000;
  const [first, second] = ['heraut-2024-10-04.ndjson.gz', 'heraut-2024-10-04-2.ndjson.gz'];
  let directory: string;
  let noted: string[];
  let last: OwnFile | undefined;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'heraut-archive-'));
    noted = [];
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const write = (name: string, text: string) => writeFile(join(directory, name), text);
  const contents = async () => {
    const names = (await readdir(directory)).toSorted();
    const texts = await Promise.all(names.map((name) => readFile(join(directory, name), 'utf8')));
    return Object.fromEntries(names.map((name, nr) => [name, texts[nr]]));
  };
  async function finish(own?: OwnFile, hardLink = link): Promise<string> {
    const unfinished = unfinishedFile(directory, day);
    await writeFile(unfinished, 'mine');
    const note = (file: string, bytes: number) => {
      noted.push(basename(file));
      last = { file, bytes };
      return Promise.resolve();
    };
    return basename(await nameFile(unfinished, day, own, note, hardLink));
  }

  it('replaces the former export, which is noted anew first', async () => {
    await write(first, 'former');
    expect(await finish({ file: join(directory, first), bytes: 6 })).toBe(first);
    expect(await contents()).toEqual({ [first]: 'mine' });
    expect(noted).toEqual([first]);
  });

  it('takes the next name where another file stands where the former export was', async () => {
    await write(first, 'of another installation');
    expect(await finish({ file: join(directory, first), bytes: 6 })).toBe(second);
    expect(await contents()).toEqual({ [first]: 'of another installation', [second]: 'mine' });
  });

  it('takes the next name where another took the one that a former try had noted, and not come to use', async () => {
    await expect(finish(undefined, failing('EEXIST'))).rejects.toThrow('ENOENT');
    expect(last).toEqual({ file: join(directory, first), bytes: 4 });
    await write(first, 'of another installation');
    expect(await finish(last)).toBe(second);
    expect(await contents()).toMatchObject({ [first]: 'of another installation', [second]: 'mine' });
  });

  it.each(['EPERM', 'EXDEV', 'EACCES'])(
    'is named where there are no hard links (%s), and replaces none',
    async (code) => {
      await write(first, 'of another installation');
      expect(await finish(undefined, failing(code))).toBe(second);
      expect(await contents()).toEqual({ [first]: 'of another installation', [second]: 'mine' });
    },
  );

  it('leaves nothing under the name where it cannot be named without hard links', async () => {
    const vanished: typeof link = async (from) => {
      await rm(from);
      await failing('EPERM')();
    };
    await expect(finish(undefined, vanished)).rejects.toThrow('ENOENT');
    expect(await contents()).toEqual({});
  });

  it('takes the next name where another took this one at the same moment, without hard links', async () => {
    const overtaken: typeof link = async () => {
      if (noted.length === 1) await write(first, 'of another installation');
      await failing('EPERM')();
    };
    expect(await finish(undefined, overtaken)).toBe(second);
    expect(noted).toEqual([first, second]);
    expect(await contents()).toEqual({ [first]: 'of another installation', [second]: 'mine' });
  });

  it('has its name where the file system made the link, and said in a repeated answer that it was there', async () => {
    const repeated: typeof link = async (from, to) => {
      await link(from, to);
      await failing('EEXIST')();
    };
    expect(await finish(undefined, repeated)).toBe(first);
    expect(await contents()).toEqual({ [first]: 'mine' });
  });
});
