import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { eventually } from '../support/eventually.js';
import { notificatie } from '../support/notificatie.js';
import { Receiver } from '../support/receiver.js';
import { HerautProcess } from '../support/spawn-heraut.js';
import { real, stacks, type PreparedStack, type Stack } from '../support/stacks.js';

const dispatchProgram = fileURLToPath(new URL('../../dist/dispatch-once.js', import.meta.url));

let prepared: PreparedStack;
let receiver: Receiver;
const running: HerautProcess[] = [];

async function prepare(stack: Stack): Promise<void> {
  [prepared, receiver] = [await stack.prepare(), await Receiver.start()];
}

async function start(settings: Record<string, string> = {}): Promise<HerautProcess> {
  const heraut = await HerautProcess.start({ settings: { ...prepared.settings, ...settings }, until: 'live' });
  running.push(heraut);
  return heraut;
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((heraut) => heraut.kill9()));
  await receiver.stop();
  await prepared.release();
});

async function subscribe(heraut: HerautProcess): Promise<void> {
  expect((await heraut.call('POST', '/api/v1/kanaal', { body: { naam: 'cases' } })).status).toBe(201);
  const body = { callbackUrl: receiver.url, auth: 'Bearer secret', kanalen: [{ naam: 'cases' }] };
  expect((await heraut.call('POST', '/api/v1/abonnement', { body })).status).toBe(201);
}

const publish = (heraut: HerautProcess, at: number, nr = 1): Promise<string> =>
  publishDated(heraut, '2025-01-01T10:00:00Z', { 'deliver-after': new Date(at).toISOString() }, nr);

async function publishDated(
  heraut: HerautProcess,
  aanmaakdatum: string,
  headers: Record<string, string> = {},
  nr = 1,
): Promise<string> {
  const body = notificatie('cases', { resourceUrl: `https://cases.example.org/statuses/${nr}`, aanmaakdatum });
  const answer = await heraut.call('POST', '/api/v1/notificaties', { body, headers });
  expect(answer.status).toBe(201);
  return answer.headers.get('notification-id')!;
}

const received = () => receiver.notifications.map(({ headers }) => headers['webhook-id']);

describe.each(stacks)('a scheduled notification on the $name stack', (stack) => {
  beforeEach(() => prepare(stack));

  it('outlives a kill of everything, and is sent when its time comes', async () => {
    const heraut = await start();
    await subscribe(heraut);
    const at = Date.now() + 4000;
    const id = await publish(heraut, at);
    await heraut.kill9();
    await heraut.start('live');
    await eventually(() => received().includes(id), 'it to arrive');
    expect(receiver.notifications[0]!.at).toBeGreaterThanOrEqual(at);
    expect(received()).toEqual([id]);
  });
});

describe.each(stacks)('a notification dated a moment ahead on the $name stack', (stack) => {
  beforeEach(() => prepare(stack));

  it.each([
    ['', {}],
    [', where its Deliver-After is past', { 'deliver-after': '2025-01-01T10:00:00Z' }],
  ])('is not sent before its date, which a receiver would refuse%s', async (_, headers) => {
    const heraut = await start();
    await subscribe(heraut);
    // Anew where it was accepted so slowly that it may not have had to wait for its date.
    const [at, id] = await eventually(async () => {
      const date = Date.now() + 450;
      const accepted = await publishDated(heraut, new Date(date).toISOString(), headers);
      return Date.now() < date && ([date, accepted] as const);
    }, 'it to be accepted before its date');
    await eventually(() => received().includes(id), 'it to arrive');
    expect(receiver.notifications[received().indexOf(id)]!.at).toBeGreaterThanOrEqual(at);
  });
});

describe('scheduled notifications, and cron instead of a dispatcher', () => {
  beforeEach(() => prepare(real));

  it('are sent once, however often it is called, and none before its time', async () => {
    const heraut = await start({ ROLES: 'api,worker' });
    await subscribe(heraut);
    const soon = Date.now() + 500;
    const due = await Promise.all(Array.from({ length: 20 }, (_, nr) => publish(heraut, soon, nr)));
    const later = await publish(heraut, soon + 3_600_000);
    await eventually(() => Date.now() > soon, 'their time');
    expect(await Promise.all([dispatch(), dispatch(), dispatch()])).toEqual([0, 0, 0]);
    // A run ends with what it has handed out: what a receiver is slow to take is held, for the next run.
    await eventually(async () => {
      expect(await dispatch()).toBe(0);
      return received().length >= due.length;
    }, 'all of them');
    expect(received().sort()).toEqual(due.sort());
    expect(received()).not.toContain(later);
  });

  async function dispatch(): Promise<number | null> {
    const child = spawn(process.execPath, [dispatchProgram, '--once'], {
      env: { PATH: process.env.PATH, ...prepared.settings, LOG_LEVEL: 'error' },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [status] = (await once(child, 'exit')) as [number | null];
    return status;
  }
});
