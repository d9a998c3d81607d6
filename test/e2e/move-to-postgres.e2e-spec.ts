import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { newEntry } from '../../src/secrets/key-ring.js';
import { queryOnce } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { Installation } from '../support/installation.js';
import { notificatie } from '../support/notificatie.js';
import { answer, hang, protectedReceiver, Receiver, type Behaviour } from '../support/receiver.js';
import { secretWatch } from '../support/secret-watch.js';
import type { Answer } from '../support/spawn-heraut.js';
import { embedded, real, type PreparedStack } from '../support/stacks.js';

const program = (name: string) => fileURLToPath(new URL(`../../dist/${name}`, import.meta.url));

/** Ends with what it printed. */
function run(name: string, settings: Record<string, string>) {
  secretWatch.knowSettings(settings);
  const ended = spawnSync(process.execPath, ['--liftoff-only', program(name)], {
    env: { PATH: process.env.PATH, TZ: 'UTC', PORT: '0', ...settings },
    encoding: 'utf8',
  });
  secretWatch.line(ended.stdout + ended.stderr);
  return ended;
}

const auth = 'Bearer of-the-receiver';
const key = newEntry();

/** By the path that it is called at: each subscription of the test has one. */
const byPath: Record<string, Behaviour> = {
  '/webhook/down': answer(503),
  '/webhook/dead': answer(415),
  '/webhook/ordered': answer(503),
  '/webhook/hangs': hang,
  '/webhook/hangs-once': hang,
};

interface Ids {
  subscription: string;
  notification: string;
}

describe('an installation that is moved from the embedded database to Postgres', () => {
  let receiver: Receiver;
  let [before, after]: PreparedStack[] = [];
  let heraut: Installation;
  let moved: ReturnType<typeof run>;
  let movingWhileItRuns: ReturnType<typeof run>;
  let channels: Record<string, string>;
  let ids: Record<string, Ids>;
  let second: string;
  let scheduledFor: string;
  let signingSecret: string;
  let cursor: string;
  let arrivedBefore: string[];
  const requestKey = randomUUID();

  const arrivalsOf = ({ notification }: Ids) =>
    receiver.notifications.filter(({ headers }) => headers['webhook-id'] === notification);
  const fetchOf = ({ subscription }: Ids, query = '') =>
    heraut.api.call('GET', `/api/v1/abonnement/${subscription}/notificaties${query}`);
  const idsIn = ({ body }: Answer) => (body as { notificaties: { id: string }[] }).notificaties.map(({ id }) => id);
  const createApplication = () =>
    heraut.api.call('POST', '/admin/v1/applications', {
      body: { clientId: 'publisher', label: 'publisher', scopes: [], secret: 'a secret of the publisher' },
      headers: { 'idempotency-key': requestKey },
    });
  const publishUnderKey = () =>
    heraut.api.call('POST', '/api/v1/notificaties', {
      body: notificatie(channels['well']!),
      headers: { 'idempotency-key': requestKey },
    });

  async function subscribed(name: string, more: Record<string, unknown> = {}) {
    const channel = await heraut.createChannel();
    const subscription = await heraut.subscribe({ channel, url: `${receiver.url}/${name}`, auth, ...more });
    channels[name] = channel;
    return subscription;
  }

  beforeAll(async () => {
    [channels, ids] = [{}, {}];
    receiver = await Receiver.start();
    receiver.always((request, response) => {
      const isNotification = request.headers['webhook-id'] !== undefined;
      return ((isNotification && byPath[request.path]) || protectedReceiver)(request, response);
    });
    before = await embedded.prepare();
    // A call that hangs does so until its process is killed.
    heraut = await Installation.start(before, { CALLBACK_NETWORKS: 'any', NOTIFICATION_REQUESTS_TIMEOUT: '45' });
    await heraut.setRetryPolicy({ maxRetries: 5, backoffFactor: 3600 });

    const well = await subscribed('well');
    const keys = await heraut.api.call('POST', `/admin/v1/subscriptions/${well}/signing-keys`, { body: {} });
    signingSecret = (keys.body as { secret: string }).secret;
    const published = await publishUnderKey();
    ids['well'] = { subscription: well, notification: published.headers.get('notification-id')! };
    await heraut.becomes('delivered', ids['well'].notification, well);
    expect((await createApplication()).status).toBe(201);
    const fetched = await fetchOf(ids['well']);
    expect(idsIn(fetched)).toEqual([ids['well'].notification]);
    cursor = (fetched.body as { cursor: string }).cursor;

    for (const [name, state] of [
      ['down', 'waiting'],
      ['dead', 'failed'],
    ] as const) {
      const subscription = await subscribed(name);
      ids[name] = { subscription, notification: (await heraut.publish(channels[name]!)).id };
      await heraut.becomes(state, ids[name].notification, subscription);
    }

    const paused = await subscribed('paused');
    await heraut.api.call('POST', `/admin/v1/subscriptions/${paused}/pause`);
    ids['paused'] = { subscription: paused, notification: (await heraut.publish(channels['paused']!)).id };
    await heraut.becomes('held', ids['paused'].notification, paused);

    const scheduled = await subscribed('scheduled');
    scheduledFor = new Date(Date.now() + 3_600_000).toISOString();
    const answered = await heraut.api.call('POST', '/api/v1/notificaties', {
      body: notificatie(channels['scheduled']!, { hoofdObject: 'https://cases.example.org/2' }),
      headers: { 'deliver-after': scheduledFor },
    });
    ids['scheduled'] = { subscription: scheduled, notification: answered.headers.get('notification-id')! };

    const ordered = await subscribed('ordered');
    await heraut.api.call('PATCH', `/admin/v1/subscriptions/${ordered}`, { body: { ordering: 'per-object' } });
    ids['ordered'] = { subscription: ordered, notification: (await heraut.publish(channels['ordered']!)).id };
    await heraut.becomes('waiting', ids['ordered'].notification, ordered);
    second = (await heraut.publish(channels['ordered']!)).id;
    await heraut.becomes('held', second, ordered);

    after = await real.prepare(false);
    const settings = { ...before.settings, DATABASE_URL: after.settings['DATABASE_URL']!, SECRET_KEYS: key };
    movingWhileItRuns = run('move-to-postgres.js', settings);

    for (const [name, deliveryGuarantee] of [
      ['hangs', 'at-least-once'],
      ['hangs-once', 'at-most-once'],
    ] as const) {
      const subscription = await subscribed(name, { deliveryGuarantee });
      ids[name] = { subscription, notification: (await heraut.publish(channels[name]!)).id };
      await eventually(() => arrivalsOf(ids[name]!).length === 1, 'the call that hangs');
    }

    await heraut.end();
    arrivedBefore = [...receiver.arrivals];
    moved = run('move-to-postgres.js', settings);
    receiver.always(answer(204));
    // The receiver answers nothing while this process waits for the end of a program, as some tests do.
    const patient = { SECRET_KEYS: key, NOTIFICATION_REQUESTS_TIMEOUT: '45' };
    heraut = await Installation.startWith(after, ['api,worker,dispatcher'], patient);
  });
  afterAll(async () => {
    await heraut.end();
    await receiver.stop();
    await Promise.all([before?.release(), after?.release()]);
  });

  it('is refused while Heraut runs on the embedded database', () => {
    expect(movingWhileItRuns.stderr).toMatch(
      / is in use by process \d+\. Stop the Heraut that runs on it, and run this again\.\n$/,
    );
    expect(movingWhileItRuns).toMatchObject({ status: 1, stdout: '' });
  });

  it('is told what was moved, table by table, and what to do next', () => {
    expect(moved.stderr).toBe('');
    expect(moved.status).toBe(0);
    const { host, pathname } = new URL(after!.settings['DATABASE_URL']!);
    expect(moved.stdout).toContain(`\nMoved to the Postgres at ${host}${pathname}, rows by table:\n`);
    expect(moved.stdout).toMatch(/^ {2}channel +8$/m);
    expect(moved.stdout).toMatch(/^ {2}notification +9$/m);
    expect(moved.stdout).toMatch(/^ {2}signing_key +1$/m);
    // One secret of an application, one of a signing key, and what each receiver wants to be shown.
    expect(moved.stdout).toContain(`\nThe 10 stored secrets are encrypted with the key ${key.split(':')[0]}, `);
    expect(moved.stdout).toMatch(/\nSUPERUSER_SECRET is not set: .*\n.* was left as it is\. .*\n.*heraut doctor\n$/);
  });

  it('does not start on the embedded database any more, nor is it moved once more', () => {
    for (const [name, settings] of [
      ['main.js', {}],
      ['move-to-postgres.js', { DATABASE_URL: after!.settings['DATABASE_URL']! }],
    ] as const) {
      const { status, stderr } = run(name, { ...before!.settings, ...settings });
      expect(stderr).toMatch(
        /^The embedded database in DATA_DIR \(.*\) cannot be used: everything in it was moved to the Postgres at .* on \d.*Z\. Set DATABASE_URL to that Postgres: .*\n$/,
      );
      expect(status).toBe(1);
    }
  });

  it('has every secret encrypted with the first of SECRET_KEYS', async () => {
    const rows = await queryOnce<{ key: string }>(
      after!.settings['DATABASE_URL'],
      `SELECT secret_key_of(secret) AS key FROM application UNION SELECT secret_key_of(auth) FROM subscription
       UNION SELECT secret_key_of(secret) FROM signing_key UNION SELECT secret_key_of(request_hash) FROM once_key WHERE request_hash LIKE 'enc:%'`,
    );
    expect(rows).toEqual([{ key: key.split(':')[0] }]);
  });

  it('takes the repetition of a request under its Idempotency-Key for what it is, of publishers and of operators', async () => {
    const published = await publishUnderKey();
    expect(published.headers.get('notification-id')).toBe(ids['well']!.notification);
    const created = await createApplication();
    expect(created.headers.get('idempotent-replayed')).toBe('true');
  });

  it('sends exactly what was outstanding, once, to receivers that know it by its signature and authorization', async () => {
    // By itself: what was under way at least once. At most once, nobody knows whether it has arrived.
    await heraut.becomes('delivered', ids['hangs']!.notification, ids['hangs']!.subscription);
    await heraut.becomes('unknown', ids['hangs-once']!.notification, ids['hangs-once']!.subscription);
    // A delivery that waits for its time does so still.
    const { subscription, notification } = ids['scheduled']!;
    expect(await heraut.delivery(notification, subscription)).toMatchObject({
      state: 'waiting',
      nextAttemptAt: scheduledFor,
    });
    for (const name of ['down', 'dead', 'ordered'])
      await heraut.command('retry', ids[name]!.notification, ids[name]!.subscription);
    await heraut.api.call('POST', `/admin/v1/subscriptions/${ids['paused']!.subscription}/resume`);
    for (const name of ['down', 'dead', 'ordered', 'paused'])
      await heraut.becomes('delivered', ids[name]!.notification, ids[name]!.subscription);
    await heraut.becomes('delivered', second, ids['ordered']!.subscription);

    const next = await heraut.publish(channels['well']!);
    await heraut.becomes('delivered', next.id, ids['well']!.subscription);
    const since = receiver.arrivals.slice(arrivedBefore.length).map((each) => each.split(' ')[0]);
    const outstanding = ['hangs', 'down', 'dead', 'ordered', 'paused'].map((name) => ids[name]!.notification);
    expect(since.toSorted()).toEqual([...outstanding, second, next.id].toSorted());
    expect(since.indexOf(second)).toBeGreaterThan(since.indexOf(ids['ordered']!.notification));

    expect(receiver.notifications.slice(arrivedBefore.length).map(({ headers }) => headers.authorization)).toEqual(
      since.map(() => auth),
    );
    const signed = receiver.notifications.find(({ headers }) => headers['webhook-id'] === next.id)!;
    expect(new Webhook(signingSecret).verify(signed.text, signed.headers as Record<string, string>)).toBeTruthy();
    // The subscriber that fetches goes on where it was.
    expect(idsIn(await fetchOf(ids['well']!, `?cursor=${cursor}`))).toEqual([next.id]);
  });
});
