import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { accepts } from '../../scripts/private-servers/private-server.mjs';
import { eventually } from '../support/eventually.js';
import { Installation } from '../support/installation.js';
import { answer, arrival, Receiver } from '../support/receiver.js';
import { superuser, type HerautProcess } from '../support/spawn-heraut.js';
import { real, stacks, type PreparedStack } from '../support/stacks.js';
import { signToken } from '../support/tokens.js';

describe.each(stacks)('SIGTERM on the $name stack', (stack) => {
  const names = Array.from({ length: 10 }, (_, number) => `/webhook/${number}`);
  // The process waits for a hanging call until it gives it up, which takes long: on one stack is enough.
  const hanging = stack === real ? names[0]! : undefined;
  let prepared: PreparedStack;
  let heraut: Installation;
  let receiver: Receiver;
  let channel: string;

  beforeEach(async () => {
    [prepared, receiver] = [await stack.prepare(), await Receiver.start()];
    heraut = await Installation.startWith(prepared, ['api,worker,dispatcher'], { NOTIFICATION_REQUESTS_TIMEOUT: '30' });
    channel = await heraut.createChannel();
    for (const name of names) await heraut.subscribe({ channel, url: new URL(name, receiver.url).href });
  });

  afterEach(async () => {
    await heraut.end();
    await receiver.stop();
    await prepared.release();
  });

  it('under load ends the process in order within 15 s; after the next start all has arrived, and only what hung twice, as the log says', async () => {
    receiver.always((request, response) => {
      if (request.path !== hanging) setTimeout(() => answer(204)(request, response), 1200);
    });
    const accepted: string[] = [];
    const publisher = async () => {
      for (;;) {
        // The process may break off what it has not answered; only a 201 is a promise.
        const answered = await heraut.tryToPublish(channel).catch(() => undefined);
        if (!answered) return;
        if (answered.status === 201) accepted.push(answered.headers.get('notification-id')!);
        await pause(20);
      }
    };
    const publishers = Promise.all(Array.from({ length: 4 }, publisher));
    await eventually(() => receiver.arrivals.length > 100, 'the load');
    await expectAnOrderlyEnd(heraut.api);
    await publishers;
    const hung = receiver.arrivals.filter((each) => hanging !== undefined && each.endsWith(hanging));
    expect(hung.length > 0).toBe(hanging !== undefined);
    const abandoned = heraut.api.logs.filter(({ event }) => event === 'delivery.abandoned');
    expect(abandoned.map(({ notificationId }) => arrival(String(notificationId), hanging!)).sort()).toEqual(
      hung.toSorted(),
    );
    const once = accepted.flatMap((id) => names.map((name) => arrival(id, name)));
    const expected = [...once, ...hung].sort();
    expect(receiver.arrivals.length).toBeLessThan(expected.length);

    receiver.always(answer(204));
    await heraut.api.start('live');
    await eventually(() => receiver.arrivals.length >= expected.length, 'the rest');
    expect(receiver.arrivals.toSorted()).toEqual(expected);
    // A call that Heraut broke off does not count as an attempt.
    expect(new Set(receiver.notifications.map(({ headers }) => headers['webhook-attempt']))).toEqual(new Set(['1']));
  });
});

describe('a request that is under way at SIGTERM', () => {
  let prepared: PreparedStack;
  let heraut: Installation;

  beforeEach(async () => {
    prepared = await real.prepare();
    heraut = await Installation.startWith(prepared, ['api']);
  });

  afterEach(async () => {
    await heraut.end();
    await prepared.release();
  });

  it('is answered; the process waits neither for the caller to close the connection nor for an unfinished request', async () => {
    const [patient, silent] = [await RawCaller.connect(heraut.api.url), await RawCaller.connect(heraut.api.url)];
    const { half, rest } = inTwo(heraut.api.url, '/api/v1/kanaal', { naam: 'late' });
    for (const caller of [patient, silent]) caller.send(half);
    await heraut.createChannel(); // by then both have got that far
    const ended = expectAnOrderlyEnd(heraut.api);
    await eventually(() => isRefused(heraut.api.url), 'new connections to be refused');
    patient.send(rest);
    await eventually(() => patient.text.startsWith('HTTP/1.1 201 '), 'the answer');
    await ended;
    expect(silent.text).toBe('');
  });
});

describe('SHUTDOWN_DELAY_SEC', () => {
  let prepared: PreparedStack;
  let heraut: Installation;

  beforeEach(async () => {
    prepared = await real.prepare();
  });

  afterEach(async () => {
    await heraut.api.stop(); // in order: those that it supervises would outlive a kill
    await prepared.release();
  });

  it.each([1, 2])(
    'after SIGTERM %i processes are not ready, yet publish on new connections, and let each caller go; a second signal ends them',
    async (PROCESSES) => {
      heraut = await Installation.startWith(prepared, ['api'], {
        SHUTDOWN_DELAY_SEC: '120',
        PROCESSES: String(PROCESSES),
      });
      const pids = (event: string) => heraut.api.logs.filter((each) => each.event === event).map(({ pid }) => pid);
      await eventually(() => pids('process.listening').length === PROCESSES, 'all processes');
      const channel = await heraut.createChannel();
      const ended = heraut.api.stop();
      // systemd tells all processes of a unit, and not only the first one.
      if (PROCESSES > 1) for (const pid of pids('process.listening')) process.kill(Number(pid), 'SIGTERM');
      await eventually(() => pids('process.stopping').length === PROCESSES, 'the signal to be heard');
      for (let turn = 1; turn <= 2 * PROCESSES; turn++) {
        const { status, headers, body } = await heraut.api.call('GET', '/health/ready', { token: null });
        expect([status, headers.get('connection'), body]).toMatchObject([
          503,
          'close',
          { parts: { process: { status: 'down', error: 'shutting down' } } },
        ]);
        const published = await heraut.tryToPublish(channel);
        expect([published.status, published.headers.get('connection')]).toEqual([201, 'close']);
      }
      expect(pids('process.stopped')).toEqual([]);
      // One that comes at once would count as the same one.
      const again = setInterval(() => heraut.api.pid && process.kill(heraut.api.pid, 'SIGTERM'), 200);
      expect(await ended.finally(() => clearInterval(again))).toBe(0);
      expect(pids('process.stopped').toSorted()).toEqual(pids('process.listening').toSorted());
    },
  );

  it('ends by itself', async () => {
    heraut = await Installation.startWith(prepared, ['api'], { SHUTDOWN_DELAY_SEC: '0.5' });
    const signalled = performance.now();
    await expectAnOrderlyEnd(heraut.api);
    expect(performance.now() - signalled).toBeGreaterThanOrEqual(499);
  });
});

async function expectAnOrderlyEnd(heraut: HerautProcess): Promise<void> {
  // It ends with 1 where it is not through in time: it has a clock of its own, for supervisors kill what takes longer
  // than 15 s.
  expect(await heraut.stop()).toBe(0);
  expect(heraut.logs.map(({ event }) => event)).toContain('process.stopped');
}

/** A request, cut in the middle of its body. */
function inTwo(url: string, path: string, fields: object): { half: string; rest: string } {
  const body = JSON.stringify(fields);
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${new URL(url).host}`,
    `authorization: Bearer ${signToken(superuser)}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ].join('\r\n');
  return { half: `${head}\r\n\r\n${body.slice(0, 5)}`, rest: body.slice(5) };
}

class RawCaller {
  text = '';

  private constructor(private readonly socket: Socket) {
    socket.on('data', (bytes: Buffer) => (this.text += bytes.toString('utf8')));
    socket.on('error', () => {}); // broken off: what it has got by then counts
  }

  static async connect(url: string): Promise<RawCaller> {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    await once(socket, 'connect');
    return new RawCaller(socket);
  }

  send(text: string): void {
    this.socket.write(text);
  }
}

async function isRefused(url: string): Promise<boolean> {
  return !(await accepts(Number(new URL(url).port)));
}
