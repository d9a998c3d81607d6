import { describe, expect, it } from 'vitest';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('../..', import.meta.url));

interface Ended {
  status: number;
  out: string;
  notes: string;
}

/** A shell with the program as `heraut`, as it is installed. */
const shell = (script: string): Promise<Ended> =>
  new Promise((resolve) => {
    const environment = { PATH: `${project}node_modules/.bin:${process.env.PATH}`, DATA_DIR: '/nowhere' };
    const words = [
      '--norc',
      '--noprofile',
      '-c',
      `heraut() { "${process.execPath}" "${project}dist/heraut.js" "$@"; }; ${script}`,
    ];
    execFile('bash', words, { env: environment }, (error, out, notes) =>
      resolve({ status: typeof error?.code === 'number' ? error.code : 0, out, notes }),
    );
  });

// The work of the program is shown in one process (test/integration/command-line.spec.ts); this is about the process
// itself.
describe('heraut, as a program,', () => {
  it('prints and ends with a status that a shell sees', async () => {
    const { status, out, notes } = await shell('heraut --version && heraut channels list');
    expect({ status, out }).toEqual({ status: 4, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
    expect(notes).toMatch(/^heraut: There is nothing to make a token with\. /);
  });

  it('completes its commands in bash, and ends quietly where its reader does', async () => {
    const script = `source <(heraut completion bash) && complete -p heraut && heraut complete -- deliveries li | head -1`;
    const { status, out, notes } = await shell(script);
    expect({ status, notes }).toEqual({ status: 0, notes: '' });
    expect(out).toMatch(/^complete .* heraut\nlist\tLists deliveries/);
  });

  it('says that its result could not be written, and fails', async () => {
    expect(await shell('heraut --version >/dev/full')).toEqual({
      status: 1,
      out: '',
      notes: 'heraut: standard output cannot be written: ENOSPC\n',
    });
  });

  it('reads standard input to its end, also where its writer is slower', async () => {
    // Each part is more than a pipe holds: the next comes when the program has begun to read, and not at once.
    const writer = `{ for part in 1 2 3 4 5; do printf '%100000s'; bash -c :; done; echo no JSON; }`;
    const { status, out, notes } = await shell(`${writer} | heraut explain --file -`);
    expect({ status, out }).toEqual({ status: 2, out: '' });
    expect(notes).toMatch(/^heraut: - is not read as JSON: Unexpected token/);
  });
});
