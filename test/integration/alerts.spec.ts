import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { randomBytes, randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { AlertChannels } from '../../src/alerts/alert-channels.js';
import { AlertLoop } from '../../src/alerts/alert-loop.service.js';
import { replaceAlertRules } from '../../src/alerts/alert-rules-rows.js';
import { besideForMs, thisBuild } from '../../src/alerts/builds.js';
import { insertNotes } from '../../src/alerts/note-rows.js';
import { NoteSender } from '../../src/alerts/note-sender.service.js';
import type { NoteChannel, NoteContent, NoteToSend, SendResult } from '../../src/alerts/note.js';
import { troubleWithAlerts } from '../../src/alerts/notes-are-sent.js';
import { AlertRounds } from '../../src/alerts/rounds.service.js';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import type { ApplicationDirectory } from '../../src/auth/application-directory.service.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { systemClock } from '../../src/infra/clock.js';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import type { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import type { AdminApi } from '../support/admin-api.js';
import { AlertScene, operator, running, sendAll, type Shown } from '../support/alert-scene.js';
import { eventually } from '../support/eventually.js';
import { insertDeliveries } from '../support/insert-deliveries.js';
import { TestLedger } from '../support/ledger.js';
import { Mailbox } from '../support/mailbox.js';
import type { Receiver } from '../support/receiver.js';
import { embedded } from '../support/stacks.js';

describe('alerts', () => {
  const scene = new AlertScene();
  const { sql, roundAndSend, subscription, newSubscription, die, list } = scene;
  let mailbox: Mailbox;
  let webhook: Receiver;
  let admin: AdminApi;
  let rounds: AlertRounds;
  let sender: NoteSender;
  let postgres: Postgres;

  beforeAll(async () => {
    ({ mailbox, webhook, admin, rounds, sender, postgres } = await scene.open());
  });
  beforeEach(() => scene.clear());
  afterAll(() => scene.close());

  it('name the newest dead letter, and why it died, however many there are and in whichever state', async () => {
    const id = await subscription();
    await die([id], 150);
    const dieToo = async (state: 'expired' | 'unknown', error: string) => {
      const [newest] = await insertDeliveries(sql, {
        notifications: 1,
        subscriptionIds: [id],
        state,
        columns: { last_error: `'${error}'`, ended_at: 'now()' },
      });
      await roundAndSend();
      expect(await list()).toMatchObject([
        { rule: 'dead-letters', what: expect.stringMatching(new RegExp(`100 or more [^]*${newest}[^]*${error}`)) },
      ]);
    };
    await dieToo('unknown', 'ECONNRESET');
    await dieToo('expired', 'ETIMEDOUT');
    await die([id]);
    await roundAndSend();
    const [newest] = await sql<{ id: string }>('SELECT max(notification_id::text) AS id FROM delivery');
    expect((await list())[0]!.what).toMatch(new RegExp(`${newest!.id}[^]*HTTP 503`));
  });

  it('tell of dead letters, and of their end, behind those of more deleted subscriptions than one round looks at', async () => {
    const live = await subscription();
    const subject = `subscription/${live}`;
    // With lower ids, as they may be.
    await die(Array.from({ length: 501 }, (_, nr) => `00000000-0000-4000-8000-${String(nr).padStart(12, '0')}`));
    await die([live]);
    const twoRounds = async () => {
      expect([await rounds.run(0), await rounds.run(0)]).toEqual([true, true]);
    };
    await twoRounds();
    expect(await list()).toMatchObject([{ rule: 'dead-letters', subject, resolvedAt: null }]);
    await sql(`UPDATE delivery SET state = 'delivered' WHERE subscription_id = $1`, [live]);
    await twoRounds();
    expect(await list()).toMatchObject([{ rule: 'dead-letters', subject, resolvedAt: expect.any(String) }]);
  });

  it('are of subscriptions as they are now, also where another process changed them; unknown, nothing is judged', async () => {
    const id = await newSubscription();
    await die([id]);
    expect(await rounds.run(0)).toBe(true);
    expect(await list('?state=open')).toMatchObject([{ subject: `subscription/${id}` }]);
    // Each time, and not once: the process reads the catalogue by itself too, and may be the first to find it unread.
    const unread = vi.spyOn(admin.api.app.get(Catalogue), 'refresh').mockRejectedValue(new Error('away'));
    await sql('DELETE FROM delivery');
    await expect(rounds.run(0)).rejects.toThrow('away');
    unread.mockRestore();
    expect(await list('?state=open')).toHaveLength(1);
  });

  it('that a newer version has opened, by a rule that this one does not know, are listed and told of by its name, and end once that is gone', async () => {
    const builds = (of: object) =>
      sql(`UPDATE alert_round SET memory = memory || jsonb_build_object('builds', $1::jsonb)`, [JSON.stringify(of)]);
    const now = Date.now();
    const longAgo = now - besideForMs;
    await builds({ ofTomorrow: { since: longAgo, at: now }, [thisBuild]: { since: longAgo, at: now } });
    await sql(
      `INSERT INTO alert (rule, subject, since, details, noted_at, is_noted)
       VALUES ('of-tomorrow', 'subscription/x', now(), '{"subscriptionId": "x"}', now(), true)`,
    );
    // The document has the rules of this version.
    const listed = async () => (await admin.api.get(`${admin.api.origin}/admin/v1/alerts`)).json['alerts'];
    expect(await listed()).toMatchObject([{ rule: 'of-tomorrow', title: 'of-tomorrow', resolvedAt: null }]);
    expect(await rounds.run(0)).toBe(true);
    expect(await listed()).toMatchObject([{ rule: 'of-tomorrow', resolvedAt: null }]);
    await builds({ ofTomorrow: { since: longAgo, at: longAgo }, [thisBuild]: { since: longAgo, at: now } });
    await die([await subscription()]);
    await roundAndSend();
    expect(await listed()).toMatchObject([
      { rule: 'dead-letters' },
      { rule: 'of-tomorrow', resolvedAt: expect.any(String) as unknown },
    ]);
    expect(mailbox.mailTo(operator).map(({ subject }) => subject)).toEqual([
      '[Heraut] New: Dead letters. Over: of-tomorrow',
    ]);
    expect(webhook.requests.map(({ text }) => text)).toEqual([expect.stringContaining('"title":"of-tomorrow"')]);
  });

  it('are opened, found and ended also where the address of an endpoint is too long for an index', async () => {
    const letters = Array.from(randomBytes(1328), (byte) => String.fromCodePoint(0x100 + byte)).join('');
    const address = `https://receiver.example/${letters}`;
    const subject = `endpoint/${address}`;
    await sql(
      `INSERT INTO endpoint (address, opened_at, reason, failures, next_probe_at)
       VALUES ($1, now() - interval '1 hour', 'HTTP 500', 5, now())`,
      [address],
    );
    await die([await subscription()]);
    await roundAndSend();
    await roundAndSend();
    const query = new URLSearchParams({ rule: 'endpoint-open', subject });
    const shown = async () => (await admin.get(`/admin/v1/alerts?${query.toString()}`)).json.alerts as Shown[];
    expect(await shown()).toMatchObject([{ subject, resolvedAt: null }]);
    expect(await sql('SELECT rule FROM alert ORDER BY rule')).toHaveLength(2);
    await sql('DELETE FROM endpoint');
    await roundAndSend();
    expect(await shown()).toMatchObject([{ subject, resolvedAt: expect.any(String) as unknown }]);
  });

  it('are found by builds beside each other in turn, however many processes the others have', async () => {
    const minuteMs = 60_000;
    const hadRounds = (endedMinutesAgo: number, builds: string[]) =>
      sql(
        `UPDATE alert_round SET ended_at = now() - $1 * interval '1 minute',
           memory = memory || jsonb_build_object('builds', $2::jsonb)`,
        [endedMinutesAgo, JSON.stringify(Object.fromEntries(builds.map((name, at) => [name, { since: 0, at }])))],
      );
    const round = () => rounds.run(minuteMs, 60 * minuteMs);
    for (const [minutes, builds, isTime] of [
      [30, ['another', thisBuild], false],
      [90, ['another', thisBuild], true],
      [90, ['another', 'a third', thisBuild], false],
      [90, ['another', thisBuild, 'a third'], true],
      [30, [thisBuild, 'another'], true],
      [30, ['another'], true],
      [30, [thisBuild], true],
    ] as const) {
      await hadRounds(minutes, [...builds]);
      expect([minutes, ...builds, await round()]).toEqual([minutes, ...builds, isTime]);
    }
  });

  it('are found and sent, and the ledger is measured, after Postgres’ clock was set back by a day', async () => {
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 60, ledgerDisk: { maxBytes: 1e12 } });
    await rounds.run(0);
    await sql(
      `UPDATE alert_round SET ended_at = ended_at + interval '1 day', noted_at = now() + interval '1 day',
         memory = jsonb_set(memory, '{disk,at}', to_jsonb((memory #>> '{disk,at}')::float8 + 86400000))`,
    );
    expect(await troubleWithAlerts(postgres)).toBe('the rules of alerts are not evaluated');
    await die([await subscription()], 50);
    expect(await rounds.run(15_000)).toBe(true);
    expect(await troubleWithAlerts(postgres)).toBeUndefined();
    const measured = `SELECT (memory #>> '{disk,at}')::float8 <= extract(epoch FROM now()) * 1000 AS now FROM alert_round`;
    expect(await sql(measured)).toEqual([{ now: true }]);
    await sql(`UPDATE alert_note SET next_at = next_at + interval '1 day'`);
    await sendAll(sender);
    expect(mailbox.mailTo(operator)).toHaveLength(1);
  });

  it('are found and sent while all connections that accept and deliver are in use', async () => {
    await die([await subscription()]);
    const refresh = vi.spyOn(admin.api.app.get(Catalogue), 'refresh').mockResolvedValue();
    const free = new EventEmitter();
    const freed = once(free, 'now');
    let used = 0;
    const size = scene.settings.DATABASE_POOL_SIZE;
    const users = Array.from({ length: size }, () =>
      postgres.transaction(async () => {
        used += 1;
        await freed;
      }),
    );
    await eventually(() => used === size, 'all of them');
    await roundAndSend();
    expect(mailbox.mailTo(operator)).toHaveLength(1);
    free.emit('now');
    await Promise.all(users);
    refresh.mockRestore();
  });

  it('are opened without anybody to tell them to, and told of by the loop of a process', async () => {
    const loop = new AlertLoop(postgres, rounds, sender, systemClock);
    await die([await subscription(), await subscription()], 50);
    await sql(`UPDATE alert_round SET ended_at = now() - interval '14 s'`);
    loop.onApplicationBootstrap();
    await eventually(() => mailbox.mailTo(operator).length > 0, 'the mail', { everyMs: 200 });
    loop.onModuleDestroy();
    await loop.beforeApplicationShutdown();
    expect(mailbox.mailTo(operator)).toHaveLength(1);
    expect(await admin.api.get(`${admin.api.origin}/metrics`, { token: null })).toMatchObject({
      text: expect.stringContaining('heraut_alerts_open{rule="dead-letters"} 2'),
    });
  });
});

describe('alerts on the embedded database', () => {
  it('are opened, told of and ended as on any other', async () => {
    const [prepared, mailbox] = await Promise.all([embedded.prepare(), Mailbox.start()]);
    const test = await TestLedger.open({
      ...prepared.settings,
      EMAIL_HOST: '127.0.0.1',
      EMAIL_PORT: String(mailbox.port),
      EMAIL_USE_TLS: 'false',
      DEFAULT_FROM_EMAIL: 'heraut@example.org',
      ALERT_MAIL_TO: operator,
    });
    const [delivery] = await test.accept();
    const found = {
      id: delivery!.subscriptionId,
      ownerClientId: 'portal',
      callbackUrl: 'https://receiver.example/',
      credentials: {},
    };
    const subscriptions = { find: () => found, all: () => [found] } as unknown as SubscriptionDirectory;
    const applications = { find: () => undefined } as unknown as ApplicationDirectory;
    const channels = new AlertChannels(test.config.settings, { now: Date.now } as LedgerClock);
    const rounds = new AlertRounds(
      test.postgres,
      test.config,
      channels,
      subscriptions,
      applications,
      new Catalogue(test.postgres),
      test.ledgerClock,
    );
    await makeMonthsAhead(test.postgres);
    await replaceAlertRules(test.postgres, { groupSeconds: 0, ledgerDisk: { maxBytes: 1_000_000 } });
    for (const state of ['failed', 'delivered', 'delivered']) {
      await test.sql(`UPDATE delivery SET state = '${state}', ended_at = now()`);
      expect([await rounds.run(0), await rounds.run(60_000)]).toEqual([true, false]);
      await sendAll(new NoteSender(test.postgres, channels));
    }
    expect(mailbox.mailTo(operator).map(({ subject }) => subject)).toEqual([
      '[Heraut] New: Dead letters, The database is large',
      '[Heraut] Over: Dead letters',
    ]);

    // To ask for the files would stop this process for a third of a second.
    const [large] = await test.sql<object>(
      `SELECT (details ->> 'bytes')::float8 = (SELECT 8192 * sum(relpages) FROM pg_class) AS "isByVacuum"
       FROM alert WHERE rule = 'ledger-disk'`,
    );
    expect(large).toEqual({ isByVacuum: true });

    // Mail hangs, and then fails: the second mail waits for the next turn, the call of the webhook for nothing.
    const tried: string[] = [];
    let fail = () => {};
    const hangs = new Promise<SendResult>((resolve) => {
      fail = () => resolve({ isSent: false, reason: 'hangs', failure: 'channel' });
    });
    const send = ({ channel }: NoteToSend): Promise<SendResult> => {
      tried.push(channel);
      return channel === 'webhook' ? Promise.resolve({ isSent: true }) : hangs;
    };
    const half = { names: ['mail', 'webhook'], operators: [], send } as unknown as AlertChannels;
    const content: NoteContent = { kind: 'test', audience: 'operator', news: [], more: 0 };
    const note = (channel: NoteChannel) => ({ id: randomUUID(), channel, address: operator, content });
    const notes = [note('mail'), note('mail'), note('webhook')];
    await test.postgres.transaction((query) => insertNotes(query, notes));
    const hanging = new NoteSender(test.postgres, half);
    const mail = hanging.sendDue('mail', running);
    await eventually(() => tried.length === 1, 'mail to hang');
    expect([await hanging.sendDue('webhook', running), tried]).toEqual([1, ['mail', 'webhook']]);
    fail();
    expect([await mail, tried.length]).toEqual([0, 2]);
    expect([await sendAll(hanging), tried]).toEqual([0, ['mail', 'webhook', 'mail']]);
    await test.close();
    await Promise.all([prepared.release(), mailbox.stop()]);
  });
});
