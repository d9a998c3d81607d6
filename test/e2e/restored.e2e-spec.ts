import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { writeFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../support/eventually.js';
import { lastPart } from '../support/last-part.js';
import { notificatie } from '../support/notificatie.js';
import { answer, protectedReceiver, Receiver } from '../support/receiver.js';
import { HerautProcess } from '../support/spawn-heraut.js';
import { embedded, real, type PreparedStack } from '../support/stacks.js';

/** docs/running.md#backup: the ways to redo changes that the backup does not have. */
describe.each([
  { stack: real, way: 'an api alone', without: [] },
  { stack: real, way: 'an api alone', without: ['AMQP_URL', 'REDIS_URL'] },
  { stack: embedded, way: 'CONFIG_FILE', without: [] },
])('a restored database on the $stack.name stack, without $without', ({ stack, way, without }) => {
  let prepared: PreparedStack;
  let settings: Record<string, string>;
  let receiver: Receiver;
  let directory: string;
  const running: HerautProcess[] = [];

  beforeEach(async () => {
    [prepared, receiver] = [await stack.prepare(), await Receiver.start()];
    directory = await mkdtemp(join(tmpdir(), 'heraut-restored-'));
    settings = Object.fromEntries(Object.entries(prepared.settings).filter(([name]) => !without.includes(name)));
  });
  afterEach(async () => {
    for (const heraut of running.splice(0)) await heraut.kill9();
    await receiver.stop();
    await prepared.release();
    await rm(directory, { recursive: true });
  });

  async function start(more: Record<string, string> = {}): Promise<HerautProcess> {
    const heraut = await HerautProcess.start({ settings: { ...settings, ...more } });
    running.push(heraut);
    return heraut;
  }

  async function call<Body>(heraut: HerautProcess, method: string, path: string, body?: unknown): Promise<Body> {
    const answered = await heraut.call(method, path, body === undefined ? {} : { body });
    if (answered.status >= 300) throw new Error(`${method} ${path}: ${answered.text}`);
    return answered.body as Body;
  }

  const received = (name: string) => receiver.notifications.filter(({ path }) => path.endsWith(`/${name}`));

  it(`sends nothing of what waits before it is redone by ${way}: a deletion, new credentials, and an erasure`, async () => {
    const names = ['deleted', 'erased', 'changed'] as const;
    const before = await start();
    const policy = { maxRetries: 100, backoffFactor: 1, baseFactor: 1, maxDelaySeconds: 1 };
    await call(before, 'PUT', '/admin/v1/retry-policy', policy);
    const ids: Record<string, string> = {};
    for (const name of names) {
      await call(before, 'POST', '/api/v1/kanaal', { naam: name });
      const body = { callbackUrl: `${receiver.url}/${name}`, auth: 'of-before', kanalen: [{ naam: name }] };
      ids[name] = lastPart((await call<{ url: string }>(before, 'POST', '/api/v1/abonnement', body)).url);
    }
    receiver.always(answer(503));
    for (const name of names) {
      await call(before, 'POST', '/api/v1/notificaties', notificatie(name));
    }
    await eventually(() => names.every((name) => received(name).length > 0));
    await before.stop();
    receiver.always(protectedReceiver);
    const calls = names.map((name) => received(name).length);
    const subscription = (name: string) => `/admin/v1/subscriptions/${ids[name]}`;

    let heraut: HerautProcess;
    if (way === 'CONFIG_FILE') {
      const authorization = { kind: 'verbatim', auth: 'of-after' };
      const paused = ['deleted', 'erased'].map((name) => ({ id: ids[name], isPaused: true }));
      const CONFIG_FILE = join(directory, 'redo.yaml');
      await writeFile(CONFIG_FILE, JSON.stringify({ subscriptions: [...paused, { id: ids.changed, authorization }] }));
      heraut = await start({ CONFIG_FILE });
      await call(heraut, 'DELETE', subscription('deleted'));
    } else {
      heraut = await start({ ROLES: 'api' });
      await call(heraut, 'DELETE', subscription('deleted'));
      await call(heraut, 'POST', `${subscription('erased')}/pause`);
      const authorization = { kind: 'verbatim', auth: 'of-after' };
      await call(heraut, 'PATCH', `${subscription('changed')}/credentials`, { authorization });
      await start({ ROLES: 'worker,dispatcher' });
    }
    const deliveryOf = async (name: string) => {
      const path = `/admin/v1/deliveries?subscription=${ids[name]}`;
      const { deliveries } = await call<{ deliveries: Record<string, string>[] }>(heraut, 'GET', path);
      return deliveries[0]!;
    };
    const become = (name: string, state: string) =>
      eventually(async () => (await deliveryOf(name)).state === state, `${name} to be ${state}`);
    await become('changed', 'delivered');
    await become('deleted', 'cancelled');
    await become('erased', 'held');
    const { notificationId: notification } = await deliveryOf('erased');
    const erasure = await call<{ id: string }>(heraut, 'POST', '/admin/v1/erasures', { notification });
    await eventually(async () => {
      const { state } = await call<{ state: string }>(heraut, 'GET', `/admin/v1/erasures/${erasure.id}`);
      return state === 'done';
    }, 'the erasure to be done');
    await call(heraut, 'POST', `${subscription('erased')}/resume`);
    await become('erased', 'cancelled');
    expect(names.map((name, nr) => received(name).length - calls[nr]!)).toEqual([0, 0, 1]);
    expect(received('changed').at(-1)!.headers.authorization).toBe('of-after');
  });
});
