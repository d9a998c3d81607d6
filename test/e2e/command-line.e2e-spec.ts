import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { answer, Receiver, type Behaviour } from '../support/receiver.js';

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

  describe('whose reader ends before it', () => {
    let server: Receiver;
    beforeEach(async () => {
      server = await Receiver.start();
    });
    afterEach(() => server.stop());

    const json = (body: object) => answer(200, { 'content-type': 'application/json' }, JSON.stringify(body));

    /** Runs it until it ends; its environment has a server and a token. */
    function run(words: string) {
      const child = spawn(process.execPath, [`${project}dist/heraut.js`, ...words.split(' ')], {
        env: { PATH: process.env.PATH, HERAUT_URL: server.url, HERAUT_TOKEN: 'any', DATA_DIR: '/nowhere' },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const exit = (once(child, 'exit') as Promise<[number | null]>).then(([status]) => status);
      return { out: child.stdout, notes: child.stderr, exit };
    }

    const close = async (stream: Readable) => {
      const closed = once(stream, 'close');
      stream.destroy();
      await closed;
    };

    it('follows a replay all the same where nobody reads its notes', async () => {
      const replay = { id: '01a202e8-19f1-77e4-97e5-ca38e5405d46', kind: 'replay', stoppedBecause: null, skipped: {} };
      const at = '2026-01-01T00:00:00.000Z';
      const of = (state: string) => ({ ...replay, state, count: 1, found: 1, done: 1, searchedTo: at, createdAt: at });
      let isClosed!: () => void;
      const closed = new Promise<void>((resolve) => (isClosed = resolve));
      const whenClosed: Behaviour = (...asked) => void closed.then(() => json(of('running'))(...asked));
      const meant = { count: 1, isComplete: true, searchedTo: null, notifications: 1, bySubscription: [] };
      server.next(json({ ...meant, needsConfirm: false }), whenClosed, json(of('done')));
      const { out, notes, exit } = run('replay start --all --yes');
      let printed = '';
      out.on('data', (text: Buffer) => (printed += text.toString()));
      await once(notes, 'data');
      await close(notes);
      isClosed();
      expect(await exit).toBe(0);
      expect(printed).toMatch(/^state +done$/m);
    });

    it('ends with the status of what it found', async () => {
      const [none, noneOf] = [{ count: 0, first: [] }, 0];
      const plan = {
        changes: [{ section: 'channels', action: 'create', key: 'zaken', about: null, fields: [], notes: [] }],
        unchanged: { applications: noneOf, channels: noneOf, subscriptions: noneOf, alertRules: 1, retryPolicy: 1 },
        unnamed: { applications: none, channels: none, subscriptions: none },
      };
      let isClosed!: () => void;
      const closed = new Promise<void>((resolve) => (isClosed = resolve));
      server.next((...asked) => void closed.then(() => json(plan)(...asked)));
      const { out, exit } = run('plan --check --file -');
      await close(out);
      isClosed();
      expect(await exit).toBe(1);
    });

    it('ends where it would go on without end', async () => {
      const event = (nr: number) => `id: ${nr}\ndata: {"event":"notification.accepted"}\n\n`;
      let goOn!: () => void;
      server.next((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(event(1));
        goOn = () => response.write(event(2));
      });
      const { out, notes, exit } = run('tail');
      let said = '';
      notes.on('data', (text: Buffer) => (said += text.toString()));
      await once(out, 'data');
      await close(out);
      goOn();
      expect({ status: await exit, said }).toEqual({ status: 0, said: '' });
    });
  });
});
