import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { parse } from 'yaml';
import { secretPlace } from '../../src/auth/application.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { Config } from '../../src/config/config.module.js';
import type { Finding } from '../../src/doctor/finding.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { MeantCounter } from '../../src/replays/count-meant.service.js';
import { keyRingOf } from '../../src/secrets/key-ring.js';
import { SecretCipher } from '../../src/secrets/secret-cipher.service.js';
import { createQueuePrefix, type TestQueues } from '../support/amqp.js';
import { Api, superuser } from '../support/api.js';
import { createDatabase, queryOnce } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { CommandLine } from '../support/fake-terminal.js';
import { lastPart } from '../support/last-part.js';
import { notificatie } from '../support/notificatie.js';
import { answer, hang, Receiver, reset } from '../support/receiver.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { testServers } from '../support/test-servers.js';

const absent = '00000000-0000-4000-8000-000000000000';

describe('the command line', () => {
  let api: Api;
  let receiver: Receiver;
  let heraut: CommandLine;
  let subscriptionId: string;

  const environment = () => ({
    HERAUT_URL: api.origin,
    SUPERUSER_CLIENT_ID: superuser.clientId,
    SUPERUSER_SECRET: superuser.secret,
  });

  beforeAll(async () => {
    api = await Api.start({ TEST_CALLBACK_AUTH: 'false', DISPATCH_INTERVAL_MS: '100' });
    receiver = await Receiver.start();
    heraut = new CommandLine(environment());
    for (const naam of ['cases', 'orders'])
      await api.post('/kanaal', { naam, documentatieLink: 'https://example.com/', filters: ['kind'] });
    const { json } = await api.post('/abonnement', {
      callbackUrl: receiver.url,
      auth: 'Bearer receiver',
      kanalen: [{ naam: 'cases', filters: { kind: 'permit' } }],
    });
    subscriptionId = lastPart(json.url);
    await heraut.run(`subscriptions pause ${subscriptionId}`);
  });
  afterAll(async () => {
    await receiver.stop();
    await api.close();
  });

  /** @returns its id; its delivery is held */
  async function publish(kanaal = 'cases', kind = 'permit'): Promise<string> {
    const fields = { hoofdObject: 'https://example.com/cases/1', kenmerken: { kind } };
    const { headers } = await api.post('/notificaties', notificatie(kanaal, fields));
    return headers.get('notification-id')!;
  }

  /** To the orders of a kind of its own. */
  async function pausedSubscription(): Promise<{ id: string; kind: string }> {
    const kind = randomUUID();
    const { json } = await api.post('/abonnement', {
      callbackUrl: receiver.url,
      auth: 'Bearer receiver',
      kanalen: [{ naam: 'orders', filters: { kind } }],
    });
    const id = lastPart(json.url);
    await heraut.run(`subscriptions pause ${id}`);
    return { id, kind };
  }

  it('shows a table to people, without lines, and JSON to machines', async () => {
    const notificationId = await publish();
    const list = `deliveries list --notification ${notificationId}`;
    const { exit, out } = await heraut.run(list);
    expect(exit).toBe(0);
    const [head, row, ...more] = out.trimEnd().split('\n');
    expect(head).toMatch(/^accepted +notification +subscription +channel +state/);
    expect(row).toContain(`${notificationId}  ${subscriptionId}  cases    held (paused)`);
    expect(more).toEqual([]);
    expect(await heraut.json(list)).toEqual({
      deliveries: [expect.objectContaining({ notificationId, subscriptionId, state: 'held', heldFor: 'paused' })],
      nextCursor: null,
    });
    expect(await heraut.json(`--json ${list} --state delivered`)).toMatchObject({ deliveries: [] });
  });

  it('goes on with the next page, and says how to', async () => {
    const [older, newer] = [await publish(), await publish()];
    const first = await heraut.run('deliveries list --limit 1');
    expect(first.out).toContain(newer);
    const [, cursor] = /^There are more; --cursor (\S+) goes on\.\n$/.exec(first.notes)!;
    expect((await heraut.run(`deliveries list --limit 1 --cursor ${cursor}`)).out).toContain(older);
    const { deliveries } = await heraut.json<{ deliveries: unknown[] }>('deliveries list --limit 2');
    expect(deliveries).toHaveLength(2);
  });

  it('shows a delivery, and changes it', async () => {
    const notificationId = await publish();
    const shown = await heraut.run(`deliveries show ${notificationId} ${subscriptionId}`);
    expect(shown.out).toMatch(/^state +held \(paused\)$/m);
    expect(shown.out).toContain('None yet.');
    const ended = await heraut.run(`deliveries cancel ${notificationId} ${subscriptionId}`);
    expect(ended).toMatchObject({ exit: 0, out: expect.stringMatching(/^state +cancelled$/m) });
    const again = await heraut.run(`deliveries cancel ${notificationId} ${subscriptionId}`);
    expect(again).toMatchObject({
      exit: 1,
      out: '',
      notes: 'heraut: The delivery has ended already. (409 delivery-ended)\n',
    });
    const retried = await heraut.run(`deliveries retry ${notificationId} ${subscriptionId}`);
    expect(retried).toMatchObject({ exit: 0, notes: expect.stringContaining('says what came of it') });
  });

  it('removes a channel that nobody subscribes to, once somebody has said so', async () => {
    const name = `gone-${randomUUID()}`;
    await api.post('/kanaal', { naam: name });
    expect(await heraut.run(`channels remove ${name}`)).toMatchObject({
      exit: 2,
      notes: expect.stringContaining(`Remove the channel ${name}?`),
    });
    expect(await heraut.run('channels remove cases --yes')).toMatchObject({
      exit: 1,
      notes: expect.stringContaining('(409 channel-in-use)'),
    });
    expect(await heraut.run(`channels remove ${name} --yes`)).toMatchObject({ exit: 0, out: `${name} is removed.\n` });
    expect(await heraut.run(`channels remove ${name} --yes`)).toMatchObject({ exit: 5 });
  });

  it('shows channels and subscriptions, and finds those asked for', async () => {
    expect((await heraut.run('channels list')).out).toMatch(/^cases +kind /m);
    const { out: channel } = await heraut.run('channels show cases');
    expect(channel).toMatch(/^duplicates +none are recognised$/m);
    expect(channel).toMatch(/^bodies kept +as configured$/m);
    expect(await heraut.run('channels show casses')).toMatchObject({
      exit: 5,
      notes: expect.stringContaining('channels list'),
    });
    expect(await heraut.json('subscriptions list --channel cases --state paused')).toMatchObject({
      subscriptions: [{ id: subscriptionId }],
    });
    expect(await heraut.json('subscriptions list --owner nobody')).toEqual({ subscriptions: [] });
    expect(await heraut.json('subscriptions list --state parked')).toEqual({ subscriptions: [] });
    const { callbackUrl } = (await heraut.json(`subscriptions show ${subscriptionId}`)) as { callbackUrl: string };
    const { origin } = new URL(callbackUrl);
    expect(await heraut.json(`subscriptions list --endpoint ${origin} --channel cases`)).toMatchObject({
      subscriptions: [{ id: subscriptionId }],
    });
    expect(await heraut.json('subscriptions list --endpoint https://nobody.invalid')).toEqual({ subscriptions: [] });
    const { out } = await heraut.run(`subscriptions show ${subscriptionId}`);
    expect(out).toMatch(/^state +paused$/m);
    expect(out).toMatch(/^cases +kind=permit$/m);
    expect(await heraut.run('endpoints list')).toMatchObject({ exit: 0, out: 'No circuit breaker is open.\n' });
    expect((await heraut.run('endpoints reset https://nowhere.example')).exit).toBe(5);
  });

  it('lists one that is paused and disabled as both, and says that it is', async () => {
    const gone = await Receiver.start();
    const kind = randomUUID();
    const kanalen = [{ naam: 'orders', filters: { kind } }];
    const { json } = await api.post('/abonnement', { callbackUrl: gone.url, auth: 'Bearer receiver', kanalen });
    const id = lastPart(json.url);
    gone.always(answer(410));
    const listed = async (state: string) => {
      const words = `subscriptions list --state ${state} --owner ${superuser.clientId} --channel orders`;
      const { subscriptions } = await heraut.json<{ subscriptions: { id: string }[] }>(words);
      return subscriptions.some((each) => each.id === id);
    };
    await publish('orders', kind);
    await eventually(() => listed('disabled'), 'it to be disabled');
    expect((await heraut.run(`subscriptions pause ${id}`)).out).toContain(`${id} is disabled, paused (`);
    expect([await listed('enabled'), await listed('paused'), await listed('disabled')]).toEqual([false, true, true]);
    expect((await heraut.run(`subscriptions show ${id}`)).out).toMatch(/^state +disabled, paused$/m);
    await gone.stop();
  });

  it('asks before it cancels what is held, and does nothing where nobody can answer', async () => {
    const { id, kind } = await pausedSubscription();
    const notificationId = await publish('orders', kind);
    const words = `subscriptions drop-held ${id}`;
    expect(await heraut.run(words)).toMatchObject({ exit: 2, notes: expect.stringContaining('say --yes') });
    expect(await heraut.run(words, { isTerminal: true, answer: 'n' })).toMatchObject({
      exit: 1,
      notes: expect.stringMatching(/Cancel the 1 held delivery [^]*\[y\/N\][^]*Nothing was done\.\n$/),
    });
    expect(await heraut.run(words, { isTerminal: true, answer: 'y' })).toMatchObject({
      exit: 0,
      out: 'They are being cancelled.\n',
    });
    await eventually(async () => {
      const list = `deliveries list --notification ${notificationId}`;
      const { deliveries } = await heraut.json<{ deliveries: { state: string }[] }>(list);
      return deliveries[0]!.state === 'cancelled';
    }, 'it to be cancelled');
    expect((await heraut.run(`${words} --yes`)).exit).toBe(0);
  });

  it('draws the retry schedule, as it is and as it would be', async () => {
    const { out } = await heraut.run('policy');
    expect(out).toContain('8 attempts in 23 h 55 m 25 s');
    expect(out).toMatch(/^●─+●[─●]+●$/m);
    const tried = await heraut.json<{ attempts: unknown[] }>('policy --max-retries 1 --jitter 0.5');
    expect(tried.attempts).toHaveLength(2);
    expect((await heraut.run('policy --max-retries 1')).out).toMatch(/; 1 retry\.$/m);
    const own = await heraut.json<{ attempts: unknown[] }>(`policy --subscription ${subscriptionId}`);
    expect(own.attempts).toHaveLength(8);
  });

  it('says of a subscription whose secrets cannot be decrypted that it is unreadable, and what an export leaves out', async () => {
    const { id } = await pausedSubscription();
    const lose = `UPDATE subscription SET credentials = 'enc:lost:AAAA', version = $1 WHERE id = $2`;
    await api.app.get(Catalogue).change((manager, version) => manager.query(lose, [version, id]));
    try {
      const { out } = await heraut.run('subscriptions list --state unreadable');
      expect(out).toMatch(new RegExp(`^${id} +paused, unreadable +`, 'm'));
      expect(out).not.toContain(subscriptionId);
      const shown = await heraut.run(`subscriptions show ${id}`);
      expect(shown.out).toMatch(/^state +paused, unreadable$/m);
      expect(shown.out).toMatch(/^nothing is sent +.*encrypted with the key lost, which is not in the key ring$/m);
      const leftOut = new RegExp(`Left out are credentials and signing keys .* of the subscriptions ${id}\\.\\n`);
      const exported = await heraut.run('export');
      expect(exported).toMatchObject({ exit: 1, notes: expect.stringMatching(leftOut) });
      expect(exported.out).toMatch(new RegExp(`^# ${leftOut.source}`));
      expect(parse(exported.out)).toHaveProperty('subscriptions');
      expect(await heraut.run('export --json')).toMatchObject({ exit: 1, notes: expect.stringMatching(leftOut) });
      const { json } = await api.get(`${api.origin}/admin/v1/configuration/text`);
      expect(json.text).toMatch(new RegExp(`^# ${leftOut.source}`));
    } finally {
      await api.call('DELETE', `/abonnement/${id}`);
    }
    expect((await heraut.run('export')).exit).toBe(0);
  });

  it('writes what is there as a configuration file', async () => {
    expect((await heraut.run('export')).out).toMatch(/name: cases$/m);
    expect(await heraut.run('plan --file /nowhere')).toMatchObject({
      exit: 2,
      notes: expect.stringContaining('/nowhere cannot be read'),
    });
  });

  it('refuses a file that is not UTF-8, and drops a mark in front', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'heraut-bytes-'));
    const file = join(directory, 'heraut.yaml');
    const secret = join(directory, 'secret');
    const wanted = (text: string) =>
      `\ufeffapplications: [{ clientId: ${text}, secret: { value_from: { file: secret } }, scopes: [notificaties.publiceren] }]\n`;
    writeFileSync(file, wanted('bytes'));
    writeFileSync(secret, `\ufeff${'s'.repeat(32)}\r\n`);
    expect(await heraut.run(`apply --file ${file} --yes`)).toMatchObject({ exit: 0 });
    writeFileSync(secret, 's'.repeat(32));
    expect((await heraut.run(`plan --file ${file}`)).out).toMatch(/^Nothing to change/m);
    writeFileSync(secret, Buffer.from('9fc3a2f0', 'hex'));
    expect(await heraut.run(`plan --file ${file}`)).toMatchObject({
      exit: 1,
      notes: expect.stringContaining('The file secret cannot be read: it is not UTF-8.'),
    });
    writeFileSync(file, Buffer.from(wanted('één'), 'latin1'));
    expect(await heraut.run(`plan --file ${file}`)).toMatchObject({
      exit: 2,
      notes: expect.stringContaining('heraut.yaml cannot be read: it is not UTF-8.'),
    });
    rmSync(directory, { recursive: true });
  });

  it('makes a token that the admin API accepts', async () => {
    const { out } = await heraut.run('token --valid 60');
    expect((await api.get(`${api.origin}/admin/v1/channels`, { token: out.trim() })).status).toBe(200);
    const given = new CommandLine({ HERAUT_URL: api.origin, HERAUT_TOKEN: out.trim() });
    expect((await given.run('channels list')).exit).toBe(0);
  });

  it.each(['secret-a\nsecret-b', 'Bearer secret-a', 'secret-ä'])(
    'says of a token that is none (%j) that it is none, and nothing of what is in it',
    async (token) => {
      const { exit, out, notes } = await new CommandLine({ HERAUT_URL: api.origin, HERAUT_TOKEN: token }).run(
        'channels list',
      );
      expect([exit, out, notes]).toEqual([4, '', expect.stringContaining('HERAUT_TOKEN is no token: ')]);
      expect(notes).not.toContain('secret');
    },
  );

  it('measures how fast it is accepted, without a question on this machine', async () => {
    const result = await heraut.json('bench --count 20 --connections 2');
    expect(result).toMatchObject({ accepted: 20, others: {}, latencyMs: { p50: expect.any(Number) } });
    // A server may demand that the link of a new channel answers.
    expect(await heraut.json('channels show heraut-bench')).toMatchObject({ documentationLink: '' });
    const elsewhere = await heraut.run('bench --count 20 --channel cases');
    expect(elsewhere).toMatchObject({ exit: 2, notes: expect.stringContaining('subscribers of cases get all of it') });
    const limited = await heraut.json<{ seconds: number }>('bench --count 5 --rate 50');
    expect(limited.seconds).toBeGreaterThanOrEqual(0.08);
  });

  it('lists notifications, shows one with its story, and says who got it and why', async () => {
    const notificationId = await publish();
    const list =
      'notifications list --channel cases --characteristic kind:permit --since 1h --main-object https://example.com/cases/1';
    expect((await heraut.run(list)).out).toContain(notificationId);
    expect(await heraut.json('notifications list --unmatched --channel cases')).toMatchObject({ notifications: [] });
    const shown = await heraut.run(`notifications show ${notificationId}`);
    expect(shown.out).toMatch(/^ {2}"kanaal": "cases",$|^ {4}"kanaal": "cases",$/m);
    expect(shown.out).toMatch(/^Story$/m);
    const explained = await heraut.run(`explain ${notificationId}`);
    expect(explained.out).toMatch(new RegExp(`^yes ${subscriptionId} `, 'm'));
    const one = await heraut.json<{ explanations: unknown[] }>(
      `explain ${notificationId} --subscription ${subscriptionId}`,
    );
    expect(one.explanations).toMatchObject([{ subscriptionId, isMatched: true }]);
  });

  it('finds deliveries by any status that a receiver can answer with', async () => {
    expect(await heraut.json('deliveries list --status 999')).toMatchObject({ deliveries: [] });
    expect((await heraut.run('deliveries list --status 1000')).exit).toBe(2);
  });

  it('says who would get a notification that was not sent', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'heraut-explain-'));
    const file = join(directory, 'notification.json');
    writeFileSync(file, JSON.stringify(notificatie('cases', { kenmerken: { kind: 'appeal' } })));
    const { out } = await heraut.run(`explain --file ${file}`);
    expect(out).toMatch(/^0 of 1 subscriptions to cases would get it\.$/m);
    expect(out).toMatch(new RegExp(`^no  ${subscriptionId} `, 'm'));
    writeFileSync(file, 'no JSON');
    expect(await heraut.run(`explain --file ${file}`)).toMatchObject({
      exit: 2,
      notes: expect.stringContaining('is not read as JSON'),
    });
    expect(await heraut.run('explain')).toMatchObject({ exit: 2, notes: expect.stringContaining('Give the id') });
    rmSync(directory, { recursive: true });
    expect(await heraut.run(`explain --file ${file}`)).toMatchObject({
      exit: 2,
      notes: expect.stringContaining('cannot be read: ENOENT'),
    });
  });

  describe('replay', () => {
    /** Of a subscription of its own, which is paused. */
    const cancelled = async (count: number): Promise<string> => {
      const { id, kind } = await pausedSubscription();
      for (let nr = 0; nr < count; nr += 1) await publish('orders', kind);
      const ended = await heraut.json(`deliveries cancel-all --subscription ${id} --yes --note test`);
      expect(ended).toMatchObject({ kind: 'cancel', state: 'done', done: count });
      return id;
    };

    it('says what is meant, asks, and shows when it is done', async () => {
      const id = await cancelled(3);
      const words = `replay start --subscription ${id} --state cancelled --rate 1000`;
      const dry = await heraut.run(`${words} --dry-run`);
      expect(dry.out).toMatch(new RegExp(`^3 deliveries of 3 notifications are meant\\.\n[^]*\n3 +${id} +paused\n$`));
      expect(await heraut.run(words)).toMatchObject({ exit: 2, notes: expect.stringContaining('say --yes') });
      expect((await heraut.run(words, { isTerminal: true, answer: 'no' })).exit).toBe(1);
      const done = await heraut.run(words, { isTerminal: true, answer: 'yes' });
      expect(done).toMatchObject({ exit: 0, out: expect.stringMatching(/done[^]* 3 of 3\n/) });
      expect(done.notes).toMatch(/of 3 \|/); // the bar
      expect(done.notes).not.toContain('starts at'); // it starts at once
      const again = await heraut.json(`${words} --yes`);
      expect(again).toBeNull();
      expect((await heraut.json<{ replays: unknown[] }>('replay list --kind replay --limit 1')).replays).toHaveLength(
        1,
      );
      expect((await heraut.run(`deliveries close-all --subscription ${id} --dry-run`)).out).toContain('0 deliveries');
      expect(await heraut.run(`deliveries close-all --subscription ${id} --yes`)).toMatchObject({
        exit: 2,
        notes: expect.stringContaining('--note'),
      });
    });

    it('is paused by Ctrl-C, says how to go on, and goes on', async () => {
      const id = await cancelled(4);
      const running = heraut.run(`replay start --subscription ${id} --state cancelled --rate 0.1 --yes`);
      await eventually(() => heraut.notes.includes('deliveries of 4'), 'it to be started');
      const { replays } = await eventually(async () => {
        const answer = await api.get(`${api.origin}/admin/v1/replays?state=running&limit=1`);
        const body = answer.json as unknown as { replays: { id: string }[] };
        return body.replays.length === 1 && body;
      }, 'it to run');
      heraut.interrupt();
      const { exit, out, notes } = await running;
      expect(exit).toBe(130);
      expect(out).toMatch(/^state +paused$/m);
      expect(notes).toContain(`\`heraut replay resume ${replays[0]!.id}\` goes on`);
      expect((await heraut.run(`replay show ${replays[0]!.id} --follow`)).exit).toBe(1);
      expect(await heraut.json(`replay resume ${replays[0]!.id}`)).toMatchObject({ state: 'running' });
      expect(await heraut.json(`replay cancel ${replays[0]!.id}`)).toMatchObject({ state: 'cancelled' });
      expect((await heraut.run(`replay resume ${replays[0]!.id}`)).notes).toContain('replay-ended');
    });

    describe('that is followed', () => {
      const replay = {
        id: absent,
        kind: 'replay',
        stoppedBecause: null,
        count: 1,
        isCountComplete: true,
        found: 0,
        done: 0,
        skipped: {},
        searchedTo: '2026-01-01T00:00:00.000Z',
        createdAt: '2026-01-01T00:00:00.000Z',
        ratePerSecond: 1,
      };
      const json = (status: number, body: object) =>
        answer(status, { 'content-type': 'application/json' }, JSON.stringify(body));
      const goesOn = `It may go on. \`heraut replay show ${absent}\` shows it, \`heraut replay pause ${absent}\` pauses it.`;
      let server: Receiver;
      let other: CommandLine;
      beforeEach(async () => {
        server = await Receiver.start();
        server.next(json(200, { ...replay, state: 'running' }));
        other = new CommandLine({ HERAUT_URL: server.url, HERAUT_TOKEN: 'any' });
      });
      afterEach(() => server.stop());

      it('is so past a server that cannot answer now', async () => {
        server.next(
          json(503, { code: 'service-unavailable', detail: 'The database is out of reach.' }),
          json(200, { ...replay, state: 'done' }),
        );
        expect(await other.run(`replay show ${absent} --follow`)).toMatchObject({
          exit: 0,
          out: expect.stringMatching(/^state +done$/m),
          notes: expect.stringContaining('The database is out of reach.'),
        });
      });

      it('is named at once, and where Ctrl-C cannot pause it, that is said', async () => {
        server.next(hang, reset);
        const following = other.run(`replay show ${absent} --follow`);
        await eventually(() => server.requests.length === 2, 'a look that is not answered');
        expect(other.notes).toBe(`It is ${absent}. Ctrl-C pauses it.\n`);
        other.interrupt();
        const { exit, notes } = await following;
        expect([exit, notes]).toEqual([3, expect.stringContaining(goesOn)]);
        expect(server.requests.map(({ method }) => method)).toEqual(['GET', 'GET', 'POST']);
      });

      it('is named also where its pausing is not answered, once ten seconds are over, however often Ctrl-C is pressed', async () => {
        server.next(hang, hang);
        const following = other.run(`replay show ${absent} --follow`);
        await eventually(() => server.requests.length === 2, 'a look that is not answered');
        const time = new AbortController();
        const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(time.signal);
        try {
          other.interrupt();
          await eventually(() => server.requests.length === 3, 'the pause to be asked for');
          expect(timeout.mock.calls).toEqual([[10_000]]);
        } finally {
          timeout.mockRestore();
        }
        expect(other.interrupt()).toBe(1);
        expect(other.notes).toMatch(/Pausing it, which takes 10 seconds at most\.\n$/);
        time.abort(new DOMException('', 'TimeoutError'));
        const { exit, notes } = await following;
        expect([exit, notes]).toEqual([3, expect.stringContaining(goesOn)]);
        expect(notes).toContain('it does not answer');
      });

      it('is not said to be paused by Ctrl-C where it is over', async () => {
        expect((await other.run(`replay show ${absent}`)).exit).toBe(0); // the one that runs
        server.next(json(200, { ...replay, state: 'done' }));
        const { exit, notes } = await other.run(`replay show ${absent} --follow`);
        expect([exit, notes]).toEqual([0, '']);
      });

      it('goes on where the token has expired, and that is said', async () => {
        server.next(json(401, { code: 'invalid-jwt-expired', detail: 'The token has expired.' }));
        const { exit, notes } = await other.run(`replay show ${absent} --follow`);
        expect([exit, notes]).toEqual([4, expect.stringContaining(goesOn)]);
      });
    });

    describe('whose answer is lost', () => {
      const json = (status: number, body: object) =>
        answer(status, { 'content-type': 'application/json' }, JSON.stringify(body));
      const meant = { count: 1, isComplete: true, searchedTo: null, notifications: 1, bySubscription: [] };
      const begin = (server: Receiver) =>
        new CommandLine({ HERAUT_URL: server.url, HERAUT_TOKEN: 'any' }).run(
          `replay start --subscription ${absent} --state failed --yes --detach`,
        );
      let server: Receiver;
      beforeEach(async () => {
        server = await Receiver.start();
        server.next(json(200, { ...meant, needsConfirm: false }));
      });
      afterEach(() => server.stop());

      it('is asked for again under the same key, so it is not sent twice', async () => {
        const inFlight = json(409, { code: 'idempotency-key-in-flight', detail: 'Ask again in a moment.' });
        const replay = { id: absent, kind: 'replay', state: 'running', stoppedBecause: null, skipped: {}, count: 1 };
        server.next(reset, inFlight, json(201, { ...replay, searchedTo: '2026-01-01T00:00:00.000Z' }));
        expect(await begin(server)).toMatchObject({ exit: 0, out: expect.stringContaining(absent) });
        const keys = server.requests.slice(1).map(({ headers }) => headers['idempotency-key']);
        expect(keys).toEqual(Array(3).fill(expect.stringMatching(/^[0-9a-f-]{36}$/)));
        expect(new Set(keys).size).toBe(1);
      });

      it('says in the end that it may have begun', async () => {
        server.always(reset);
        expect(await begin(server)).toMatchObject({ exit: 3, notes: expect.stringContaining('may have begun') });
        expect(server.requests).toHaveLength(4);
      });

      it('is not asked for again where it was refused', async () => {
        server.next(json(409, { code: 'selection-not-confirmed', detail: 'The selection means 2 deliveries.' }));
        const { exit, notes } = await begin(server);
        expect([exit, server.requests]).toEqual([1, expect.objectContaining({ length: 2 })]);
        expect(notes).not.toContain('may have begun');
      });
    });

    describe('that could not be counted to the end', () => {
      it('begins with --yes also where it is counted further the next time', async () => {
        const id = await cancelled(2);
        const counter = api.app.get(MeantCounter);
        const count = counter.count.bind(counter);
        const limits = { deliveries: 100, notifications: 100, ms: -1 }; // its time is over before it has begun
        const hurried = vi
          .spyOn(counter, 'count')
          .mockImplementationOnce((meant, range, subscription) => count(meant, range, subscription, limits));
        try {
          const { exit, out, notes } = await heraut.run(
            `replay start --subscription ${id} --state cancelled --rate 1000 --yes`,
          );
          expect([exit, out]).toEqual([0, expect.stringMatching(/ 2 of 2\n/)]);
          expect(notes).toMatch(/^0 or more deliveries [^]*Nothing was done: [^]*\n2 deliveries of 2 notifications/);
        } finally {
          hurried.mockRestore();
        }
      });

      it('is not counted anew without end', async () => {
        const server = await Receiver.start();
        const json = (status: number, body: object) =>
          answer(status, { 'content-type': 'application/json' }, JSON.stringify(body));
        const searchedTo = '2026-01-01T00:00:00.000Z';
        const short = { count: 0, isComplete: false, searchedTo, notifications: 0, bySubscription: [] };
        const changed = json(409, { code: 'selection-not-confirmed', detail: 'The selection means 2 deliveries.' });
        const dryRun = json(200, { ...short, needsConfirm: true });
        const isDryRun = ({ path }: { path: string }) => path.endsWith('/dry-run');
        server.always((request, response) => (isDryRun(request) ? dryRun : changed)(request, response));
        const other = new CommandLine({ HERAUT_URL: server.url, HERAUT_TOKEN: 'any' });
        const { exit, notes } = await other.run(`replay start --subscription ${absent} --yes`);
        expect([exit, notes]).toEqual([1, expect.stringContaining('The selection means 2 deliveries.')]);
        expect(server.requests.filter(isDryRun)).toHaveLength(5);
        await server.stop();
      });
    });

    it('that means more by the time that somebody says yes does nothing, and asks about that', async () => {
      const id = await cancelled(2);
      const operator = new CommandLine(environment());
      const replay = operator.run(`replay start --subscription ${id} --state cancelled --rate 1000`, {
        isTerminal: true,
      });
      await eventually(() => operator.notes.includes('Send again 2 deliveries?'), 'the question');
      const { channels } = await heraut.json<{ channels: { filters: { kind: string } }[] }>(`subscriptions show ${id}`);
      await heraut.json(`deliveries cancel ${await publish('orders', channels[0]!.filters.kind)} ${id}`);
      operator.type('yes');
      await eventually(() => operator.notes.includes('Send again 3 deliveries?'), 'the question about three');
      operator.type('yes');
      const { exit, out, notes } = await replay;
      expect([exit, out]).toEqual([0, expect.stringMatching(/ 3 of 3\n/)]);
      expect(notes).toContain('It has changed since you were asked. Nothing was done.');
    });

    it('sends again what has been delivered only where its state is named as well', async () => {
      const id = await cancelled(1); // of its own: another test delivers to the one that all share
      const start = `replay start --subscription ${id} --delivered --dry-run`;
      for (const words of ['', ' --state failed --state expired', ` --everything-for ${id}`])
        expect(await heraut.run(start + words)).toMatchObject({
          exit: 2,
          out: '',
          notes: expect.stringContaining('--state delivered'),
        });
      expect(await heraut.run(`${start} --state failed --state delivered`)).toMatchObject({
        exit: 0,
        out: expect.stringContaining('0 deliveries'),
      });
    });

    it('that means everything has to be told so', async () => {
      expect(await heraut.run('replay start --yes')).toMatchObject({
        exit: 2,
        notes: expect.stringContaining('--all of them'),
      });
    });
  });

  describe('tail', () => {
    it('shows what happens, and goes on behind the last event when its connection was lost', async () => {
      const proxy = await TcpProxy.start(api.origin);
      const listening = new CommandLine({
        HERAUT_URL: proxy.url,
        SUPERUSER_CLIENT_ID: superuser.clientId,
        SUPERUSER_SECRET: superuser.secret,
      });
      const done = listening.run('tail --event notification.accepted --channel cases --json');
      const heard = () => [...listening.out.matchAll(/"notificationId":"([^"]+)"/g)].map(([, id]) => id);
      const first = await eventually(async () => {
        const id = await publish();
        await setTimeout(500); // until it is told
        return heard().includes(id) && id;
      }, 'a notification to be told');
      await proxy.cut();
      const missed = [await publish(), await publish()];
      await eventually(() => listening.notes.includes('The connection is lost'), 'the loss to be noticed');
      await proxy.restore();
      await eventually(() => missed.every((id) => heard().includes(id)), 'what was missed');
      listening.interrupt();
      expect(await done).toMatchObject({ exit: 0, notes: expect.stringContaining('Connected again.') });
      expect(heard().slice(heard().indexOf(first))).toEqual([first, ...missed]);
      await proxy.cut();
    });

    it('goes on behind an event, for people one a line', async () => {
      const change = (verb: 'pause' | 'resume') =>
        api.post(`${api.origin}/admin/v1/subscriptions/${subscriptionId}/${verb}`, undefined);
      let isOver = false;
      const before = heraut.run('tail --count 1 --event subscription.resumed').finally(() => (isOver = true));
      // Events from before it listens are not told.
      await eventually(async () => {
        await change('pause');
        await change('resume');
        return isOver;
      }, 'an event to be told');
      const { out, notes } = await before;
      expect(out).toMatch(
        new RegExp(`^[-0-9]{10} [:0-9]{8}Z  subscription.resumed   subscriptionId=${subscriptionId}\n$`),
      );
      const [, last] = /--after (\d+)/.exec(notes)!;
      await change('pause');
      const again = await heraut.run(`tail --count 1 --after ${last} --event subscription.paused`);
      expect(again.out).toContain(subscriptionId);
    });

    it('is refused like everything else', async () => {
      expect((await heraut.run('tail --event nonsense')).notes).toContain('event: ');
      expect((await heraut.run('tail --after nonsense')).notes).toContain('Is not the id of an event.');
      expect((await new CommandLine({ HERAUT_URL: api.origin, HERAUT_TOKEN: 'none' }).run('tail')).exit).toBe(4);
      expect((await new CommandLine({ HERAUT_URL: 'http://127.0.0.1:1', HERAUT_TOKEN: 'none' }).run('tail')).exit).toBe(
        3,
      );
      const { status, headers } = await api.call('HEAD', `${api.origin}/admin/v1/events`);
      expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    });
  });

  describe('doctor', () => {
    let environment: Record<string, string>;
    let queues: TestQueues;

    beforeAll(() => {
      queues = createQueuePrefix();
      environment = {
        HERAUT_URL: api.origin,
        DATABASE_URL: api.app.get(Config).settings.DATABASE_URL!,
        AMQP_URL: queues.url,
        QUEUE_PREFIX: queues.prefix,
        REDIS_URL: testServers.redisUrl(),
        SUPERUSER_CLIENT_ID: superuser.clientId,
        SUPERUSER_SECRET: superuser.secret,
      };
    });

    async function findingsOf(changed: Record<string, string>): Promise<Finding[]> {
      const { out } = await new CommandLine({ ...environment, ...changed }).run('doctor --json');
      return (JSON.parse(out) as { findings: Finding[] }).findings;
    }

    async function verdicts(changed: Record<string, string>): Promise<Record<string, string>> {
      const findings = await findingsOf(changed);
      return Object.fromEntries(findings.map(({ name, verdict }) => [name, verdict]));
    }

    it('finds what is well, and what is not, and says what to do', async () => {
      const found = await verdicts({});
      expect(found).toMatchObject({
        settings: 'ok',
        superuser: 'ok',
        'secret-keys': 'warning',
        postgres: 'ok',
        'postgres-time-limits': 'ok',
        'postgres-connections': 'ok',
        'postgres-locks': 'ok',
        'postgres-permissions': 'ok',
        clock: 'ok',
        migrations: 'ok',
        processes: 'ok',
        rabbitmq: 'ok',
        'rabbitmq-alarms': 'ok',
        'rabbitmq-queues': 'warning', // this installation uses none
        redis: 'ok',
        health: 'ok',
        'admin-api': 'ok',
      });
      const { exit, out } = await new CommandLine(environment).run('doctor --strict', { isTerminal: true });
      expect(exit).toBe(1);
      expect(out).toMatch(/WARNING +\S* +secret-keys [^]*→ Set SECRET_KEYS for every process/);
    });

    it('looks at as much as the documentation says, by the names that it has there', async () => {
      const read = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
      const [, table] = /\n\| finding [^]*?\n((?:\|.*\n)+)/.exec(read('command-line.md'))!;
      const named = [...table!.matchAll(/^\|([^|]*)\|/gm)].flatMap(([, names]) => names!.match(/[a-z][a-z-]*/g) ?? []);
      const found = (await findingsOf({})).map(({ name }) => name);
      expect([...found, 'same-servers'].toSorted()).toEqual(named.toSorted()); // that one where it is not the same
      const [, ok, warnings] = /^(\d+) ok, (\d+) warnings, 0 failed$/m.exec(read('operations.md'))!;
      expect(Number(ok) + Number(warnings)).toBe(found.length);
    });

    it('finds a database that answers, and in which nothing can be written', async () => {
      const database = await createDatabase();
      const name = new URL(database.url).pathname.slice(1);
      await queryOnce(database.url, `ALTER DATABASE ${name} SET default_transaction_read_only = on`);
      expect(await verdicts({ DATABASE_URL: database.url })).toMatchObject({ postgres: 'failed', clock: 'ok' });
      await database.drop();
    });

    it('says whether a process would start with the keys that it finds, as the start itself does', async () => {
      const entry = (id: string) => `${id}:${Buffer.alloc(32, id).toString('base64')}`;
      const look = async (changed: Record<string, string>) => (await verdicts(changed))['secret-keys'];
      expect(await look({ SECRET_KEYS_FILE: '/not/there' })).toBe('failed');
      expect(await look({ SECRET_KEYS: entry('k1') })).toBe('ok');
      const { manager } = api.app.get(Postgres).dataSource;
      const id = randomUUID();
      const stored = new SecretCipher(keyRingOf([entry('k1')], 'test')).encrypt('secret', secretPlace(id));
      await manager.query(
        `INSERT INTO application (id, client_id, label, secret, scopes, is_superuser, version)
         VALUES ($1::uuid, $1::text, '', $2, '{}', false, 1)`,
        [id, stored],
      );
      try {
        expect(await look({})).toBe('failed');
        expect(await look({ SECRET_KEYS: entry('k2') })).toBe('failed');
        expect(await look({ SECRET_KEYS: [entry('k2'), entry('k1')].join() })).toBe('ok');
        const another = await findingsOf({ SECRET_KEYS: `k1:${Buffer.alloc(32, 'k9').toString('base64')}` });
        expect(another.find(({ name }) => name === 'secret-keys')).toMatchObject({
          verdict: 'failed',
          found: expect.stringMatching(
            /under the same ids: k1\. .* but not with the one that has this id in the key ring\.$/,
          ),
        });
      } finally {
        await manager.query('DELETE FROM application WHERE id = $1', [id]);
      }
    });

    it('tells servers that are out of reach, or refuse, from the others', async () => {
      const found = await verdicts({
        DATABASE_URL: 'postgres://heraut@127.0.0.1:1/heraut',
        AMQP_URL: 'amqp://127.0.0.1:1',
        REDIS_URL: 'redis://127.0.0.1:1',
        HERAUT_URL: 'http://127.0.0.1:1',
      });
      expect(found).toMatchObject({
        postgres: 'failed',
        migrations: 'skipped',
        rabbitmq: 'failed',
        redis: 'failed',
        health: 'failed',
        'admin-api': 'skipped',
      });
      expect(await verdicts({ SUPERUSER_SECRET: 'not the secret of it' })).toMatchObject({ 'admin-api': 'failed' });
    });

    it('tells an alarm of RabbitMQ from a server that is out of reach', async () => {
      const proxy = await TcpProxy.start(environment.AMQP_URL!);
      // As a server with an alarm does, it reads nothing any more of a connection that has published, and says so.
      const message = Buffer.from('heraut\xce', 'latin1');
      const blocked = Buffer.from('\x01\0\0\0\0\0\x0b\0\x0a\0\x3c\x06memory\xce', 'latin1');
      proxy.onClientData = (bytes) => {
        if (!bytes.includes(message)) return;
        proxy.holdUp();
        proxy.say(blocked);
      };
      try {
        expect(await verdicts({ AMQP_URL: proxy.url })).toMatchObject({
          rabbitmq: 'ok',
          'rabbitmq-alarms': 'failed',
          'rabbitmq-queues': 'warning',
        });
      } finally {
        await proxy.cut();
      }
    });

    it('looks at what it can where the settings are wrong', async () => {
      const found = await verdicts({ PORT: 'none' });
      expect(found).toMatchObject({
        node: expect.stringMatching(/ok|warning/),
        settings: 'failed',
        postgres: 'skipped',
        health: 'ok',
      });
    });

    /** With the `DATABASE_URL` of a role that may connect, and nothing else. */
    async function withLimitedRole(look: (url: string) => Promise<void>): Promise<void> {
      const role = `limited_${Math.random().toString(36).slice(2)}`;
      const { dataSource } = api.app.get(Postgres);
      await dataSource.query(`CREATE ROLE ${role} LOGIN`);
      const limited = new URL(environment.DATABASE_URL!);
      limited.username = role;
      try {
        await look(limited.href);
      } finally {
        await dataSource.query(`DROP ROLE ${role}`);
      }
    }

    it('finds a role of the database that may not do what Heraut does', () =>
      withLimitedRole(async (url) => {
        expect(await verdicts({ DATABASE_URL: url })).toMatchObject({
          postgres: 'ok',
          'postgres-permissions': 'failed',
        });
      }));

    it('counts the connections of all roles, whatever its own may see of them', () =>
      withLimitedRole(async (url) => {
        const others = Array.from({ length: 10 }, () => new pg.Client(environment.DATABASE_URL));
        try {
          await Promise.all(others.map((client) => client.connect()));
          const findings = await findingsOf({ DATABASE_URL: url });
          const { found } = findings.find(({ name }) => name === 'postgres-connections')!;
          const [, used] = /^(\d+) of \d+ in use/.exec(found)!;
          expect(Number(used)).toBeGreaterThan(others.length);
        } finally {
          await Promise.all(others.map((client) => client.end()));
        }
      }));
  });

  describe('says what is wrong, and with which status,', () => {
    it.each([
      ['nonsense', 2, "unknown command 'nonsense'"],
      ['chanels list', 2, 'Did you mean channels?'],
      ['deliveries show abc def', 2, 'It is a UUID, as the lists show it.'],
      ['deliveries list --state gone', 2, 'Allowed choices are'],
      ['deliveries list --limit 0', 2, 'It is a whole number from 1'],
      ['deliveries list --since yesterday', 2, 'how long ago'],
      [`deliveries show ${absent} ${absent}`, 5, 'There is no such delivery. (404 not_found)'],
      [`deliveries list --cursor wrong`, 1, '\n  cursor: Is not the nextCursor of a page.'],
    ])('%s', async (words, exit, notes) => {
      const result = await heraut.run(words);
      expect(result).toMatchObject({ exit, out: '' });
      expect(result.notes).toContain(notes);
    });

    it('where the refusal is for machines: as JSON too', async () => {
      const { exit, out } = await heraut.run('deliveries list --cursor wrong --json');
      expect(exit).toBe(1);
      expect(JSON.parse(out)).toMatchObject({ status: 400, code: 'invalid', invalidParams: [{ name: 'cursor' }] });
    });

    it.each([
      ['nothing listens there', { HERAUT_URL: 'http://127.0.0.1:1' }, 3, 'Set HERAUT_URL'],
      ['the address is none', { HERAUT_URL: 'here' }, 2, 'is no http or https URL'],
      ['the secret is another', { SUPERUSER_SECRET: 'another secret than that' }, 4, 'invalid-jwt-signature'],
      [
        'there is no secret',
        { SUPERUSER_SECRET: '', DATA_DIR: '/nowhere' },
        4,
        'There is nothing to make a token with.',
      ],
    ])('where %s', async (_, changed, exit, notes) => {
      const other = new CommandLine({
        HERAUT_URL: api.origin,
        SUPERUSER_CLIENT_ID: superuser.clientId,
        SUPERUSER_SECRET: superuser.secret,
        ...changed,
      });
      const result = await other.run('channels list');
      expect(result).toMatchObject({ exit, out: '' });
      expect(result.notes).toContain(notes);
    });

    it('where something else than Heraut answers', async () => {
      const other = new CommandLine({ HERAUT_URL: receiver.url, HERAUT_TOKEN: 'any' });
      expect(await other.run('channels list')).toMatchObject({
        exit: 3,
        notes: expect.stringContaining('there is no admin API of Heraut'),
      });
    });
  });

  it.each(['--help', 'help deliveries', 'deliveries list --help', '--version'])('helps with %s', async (words) => {
    expect(await heraut.run(words)).toMatchObject({ exit: 0, notes: '', out: expect.stringMatching(/\S/) });
  });
});
