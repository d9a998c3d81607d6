import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { randomBytes, randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { Webhook } from 'standardwebhooks';
import type { QueryRunner } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { ForgetAnswersInAlerts1763625600031 } from '../../migrations/1763625600031-forget-answers-in-alerts.js';
import { AlertChannels } from '../../src/alerts/alert-channels.js';
import { besideForMs, thisBuild } from '../../src/alerts/builds.js';
import { replaceAlertRules } from '../../src/alerts/alert-rules-rows.js';
import { insertNotes } from '../../src/alerts/note-rows.js';
import type { NoteChannel, NoteContent, NoteToSend, SendResult } from '../../src/alerts/note.js';
import { NoteSender } from '../../src/alerts/note-sender.service.js';
import { AlertLoop } from '../../src/alerts/alert-loop.service.js';
import { troubleWithAlerts } from '../../src/alerts/notes-are-sent.js';
import { AlertRounds } from '../../src/alerts/rounds.service.js';
import { addActivity } from '../../src/activity/activity-rows.js';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { ApplicationDirectory } from '../../src/auth/application-directory.service.js';
import { Heartbeat } from '../../src/liveness/heartbeat.service.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { Config } from '../../src/config/config.module.js';
import { systemClock } from '../../src/infra/clock.js';
import { Postgres, type Query } from '../../src/infra/postgres/postgres.js';
import { dayOfId } from '../../src/ledger/partitions.js';
import { results, settleResults } from '../../src/ledger/settle.service.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import { AdminApi } from '../support/admin-api.js';
import { eventually } from '../support/eventually.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';
import { insertSubscription } from '../support/insert-subscription.js';
import { TestLedger } from '../support/ledger.js';
import { Mailbox } from '../support/mailbox.js';
import { answer, Receiver } from '../support/receiver.js';
import { embedded } from '../support/stacks.js';

const operator = 'ops@example.org';
const second = 'second@example.org';
const secret = `whsec_${Buffer.from(randomUUID()).toString('base64')}`;
const password = `p-${randomUUID()}`;
/** A receiver may repeat what it was sent. */
const answered = `burgerservicenummer-${randomUUID()}`;
const running = new AbortController().signal;

/** By every channel; @returns how many were sent */
async function sendAll(sender: NoteSender): Promise<number> {
  const sent = await Promise.all(sender.channelNames.map((channel) => sender.sendDue(channel, running)));
  return sent.reduce((sum, each) => sum + each, 0);
}

interface Shown {
  id: string;
  rule: string;
  subject: string;
  openedAt: string;
  resolvedAt: string | null;
  toldAt: string | null;
  what: string;
  runbook: string;
}

describe('alerts', () => {
  let mailbox: Mailbox;
  let webhook: Receiver;
  let admin: AdminApi;
  let rounds: AlertRounds;
  let sender: NoteSender;
  let postgres: Postgres;
  let channel: string;

  beforeAll(async () => {
    [mailbox, webhook] = await Promise.all([Mailbox.start({ users: { heraut: password } }), Receiver.start()]);
    webhook.always(answer(204));
    admin = await AdminApi.start({
      TEST_CALLBACK_AUTH: 'false',
      EMAIL_HOST: '127.0.0.1',
      EMAIL_PORT: String(mailbox.port),
      EMAIL_USE_TLS: 'false',
      EMAIL_HOST_USER: 'heraut',
      EMAIL_HOST_PASSWORD: password,
      DEFAULT_FROM_EMAIL: 'heraut@example.org',
      ALERT_MAIL_TO: `${operator}, ${second}`,
      ALERT_WEBHOOK_URL: webhook.url,
      ALERT_WEBHOOK_SECRET: secret,
      // The alerts' own webhook is on this machine, where callbacks may not lead.
      CALLBACK_NETWORKS: 'public',
    });
    // Rounds are made, and notes sent, when a test says so.
    const loop = admin.api.app.get(AlertLoop);
    loop.onModuleDestroy();
    await loop.beforeApplicationShutdown();
    rounds = admin.api.app.get(AlertRounds);
    sender = admin.api.app.get(NoteSender);
    postgres = admin.api.app.get(Postgres);
    channel = randomUUID();
    await admin.api.post('/kanaal', { naam: channel });
  });
  afterAll(async () => {
    await admin.close();
    await Promise.all([mailbox.stop(), webhook.stop()]);
  });

  beforeEach(async () => {
    // The test before left these behind.
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 0 });
    await sql('DELETE FROM delivery');
    await sql('DELETE FROM endpoint');
    await sql(
      `WITH change AS (UPDATE catalogue SET version = version + 1 RETURNING version)
       UPDATE subscription SET deleted_at = now(), version = change.version FROM change`,
    );
    await admin.get('/admin/v1/subscriptions');
    mailbox.refused.clear();
    webhook.always(answer(204));
    await sql('DELETE FROM alert');
    await sql('DELETE FROM alert_note');
    mailbox.received.length = 0;
    webhook.requests.length = 0;
  });

  const sql = <R>(text: string, values: unknown[] = []): Promise<R[]> => postgres.dataSource.query(text, values);

  /** Of this process, since it began. */
  async function mailsCounted(result: string): Promise<number> {
    const { text } = await admin.api.get(`${admin.api.origin}/metrics`, { token: null });
    const line = new RegExp(`^heraut_alert_notes_total\\{channel="mail",result="${result}"\\} (\\d+)$`, 'm');
    return Number(line.exec(text)?.[1] ?? 0);
  }

  const roundAndSend = async () => {
    expect(await rounds.run(0)).toBe(true);
    await sendAll(sender);
  };

  /** Its receiver is never called. */
  async function subscription(parts: { alertEmail?: string; owner?: string } = {}): Promise<string> {
    const id = await newSubscription(parts);
    await admin.get('/admin/v1/subscriptions'); // all is in memory
    return id;
  }

  const newSubscription = ({ alertEmail = null as string | null, owner = 'portal' } = {}): Promise<string> =>
    insertSubscription(sql, {
      owner_client_id: owner,
      callback_url: 'https://receiver.example/hook?key=hidden',
      auth: 'Bearer x',
      channels: JSON.stringify([{ channel, filters: {} }]),
      alert_email: alertEmail,
    });

  /** That many dead letters of each. */
  async function die(subscriptionIds: string[], count = 1): Promise<void> {
    const ids = Array.from({ length: count }, () => uuidv7());
    await insertNotifications(sql, ids, { channel });
    await insertDeliveries(sql, {
      notifications: ids,
      subscriptionIds,
      state: 'failed',
      columns: { last_status: '503', last_error: `'HTTP 503: ${answered}'`, ended_at: 'now()' },
    });
  }

  /**
   * Deliveries that wait after so many failures, each a minute after the one before.
   * @param more attempts that they had before they were sent again, hours ago; how many they are; when their
   * notifications were accepted
   */
  async function fail(
    subscriptionId: string,
    failures: number,
    firstTryAgo: string,
    { before = 0, count = 1, acceptedHoursAgo = 0 } = {},
  ): Promise<void> {
    const msecs = Date.now() - acceptedHoursAgo * 3_600_000;
    const ids = Array.from({ length: count }, () => uuidv7({ msecs }));
    await insertNotifications(sql, ids, { channel });
    await insertDeliveries(sql, {
      notifications: ids,
      subscriptionIds: [subscriptionId],
      state: 'waiting',
      columns: {
        failures: String(failures),
        attempts: String(before + failures),
        last_status: failures > 0 ? '401' : 'NULL',
        last_error: failures > 0 ? `'HTTP 401: ${answered}'` : 'NULL',
        next_at: "now() + interval '1 hour'",
      },
    });
    await sql(
      `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, status)
       SELECT id, $2, 1, nr, CASE WHEN nr <= $5 THEN now() - interval '5 hours'
         ELSE now() - $4::interval + (nr - $5 - 1) * interval '1 minute' END, 5, 401
       FROM unnest($1::uuid[]) AS id, generate_series(1, $5::int + $3::int) AS nr`,
      [ids, subscriptionId, failures, firstTryAgo, before],
    );
  }

  /** As a process counts it. */
  async function delivered(subscriptionId: string, ago: string): Promise<void> {
    const [row] = await sql<{ at: number }>('SELECT (extract(epoch FROM now() - $1::interval) * 1000)::float8 AS at', [
      ago,
    ]);
    const counts = { accepted: 0, duplicates: 0, delivered: 1, failedAttempts: 0, gaveUp: 0 };
    const query: Query = (statement, values) => postgres.query(statement, values);
    await addActivity(query, [{ kind: 'subscription', id: subscriptionId, counts }], row!.at);
  }

  const list = async (query = ''): Promise<Shown[]> =>
    (await admin.get(`/admin/v1/alerts${query}`)).json.alerts as Shown[];

  /** All that is kept of alerts and notes. */
  const stored = async (): Promise<string> => {
    const [row] = await sql<{ text: string }>(
      `SELECT concat((SELECT string_agg(details::text, ' ') FROM alert), ' ',
         (SELECT string_agg(content::text, ' ') FROM alert_note)) AS text`,
    );
    return row!.text;
  };

  it('tell of a storm of dead letters in one mail and one call, with what to do, and not a hundred', async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, () => subscription()));
    await die(ids, 20);
    await roundAndSend();
    await die(ids, 20);
    await roundAndSend();
    await roundAndSend();
    const mails = mailbox.mailTo(operator);
    expect(mails.map(({ subject }) => subject)).toEqual(['[Heraut] New: Dead letters (5)']);
    for (const id of ids) expect(mails[0]!.text).toContain(`20 deliveries for subscription ${id} of portal`);
    expect(mails[0]!.text).toMatch(
      /HTTP 503[^]*heraut replay start --subscription[^]*docs\/operations\.md#alert-dead-letters/,
    );
    expect(mails[0]!.text).not.toContain('hidden');
    expect(mailbox.mailTo(second)).toHaveLength(1);
    expect(webhook.requests).toHaveLength(1);
    const open = await list('?state=open');
    expect(open).toHaveLength(5);
    expect(open[0]).toMatchObject({ rule: 'dead-letters', what: expect.stringContaining('40 deliveries') });
  });

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

  it('keep the status that a receiver answered, and nothing else of its answer, which goes from the ledger before they do', async () => {
    const [dead, failing] = [await subscription({ alertEmail: 'owner@example.org' }), await subscription()];
    await die([dead]);
    await fail(failing, 3, '2 hours');
    await roundAndSend();
    const kept = await stored();
    expect(kept).toContain('"reason": "HTTP 503"');
    expect(kept).toContain('"reason": "HTTP 401"');
    expect(kept).not.toContain(answered);
  });

  it('lose the answers that a version before stored in them', async () => {
    await die([await subscription()], 2);
    await roundAndSend();
    await sql(`UPDATE alert SET details = details || '{"reason": "HTTP 503: ${answered}"}'`);
    await sql(
      `UPDATE alert_note SET content = jsonb_set(content, '{news,0,details}', '{"count": 2, "reason": "HTTP 503: ${answered}"}')`,
    );
    await new ForgetAnswersInAlerts1763625600031().up({ query: sql } as unknown as QueryRunner);
    const kept = await stored();
    expect(kept).not.toContain(answered);
    expect(kept.match(/"reason": "HTTP 503"/g)).toHaveLength(1 + 3); // one alert, and a mail to two and a call about it
    expect(kept.match(/"count": 2/g)).toHaveLength(1 + 3);
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

  it('are posted with a signature of Standard Webhooks, also to a private network', async () => {
    await die([await subscription()]);
    await roundAndSend();
    const [call] = webhook.requests;
    const verified = new Webhook(secret).verify(call!.text, call!.headers as never);
    expect(verified).toMatchObject({ type: 'heraut.alerts', data: { alerts: [{ rule: 'dead-letters' }] } });
    const forged = { ...call!.headers, 'webhook-id': randomUUID() } as never;
    expect(() => new Webhook(secret).verify(call!.text, forged)).toThrow('No matching signature');
  });

  it('tell within the hour of a receiver that refuses all it is sent, until one call succeeds', async () => {
    const [refusing, trying, scheduled] = await Promise.all([subscription(), subscription(), subscription()]);
    await fail(refusing, 3, '61 minutes');
    await fail(refusing, 1, '5 minutes');
    await fail(trying, 3, '59 minutes');
    await fail(scheduled, 0, '0 minutes');
    await delivered(refusing, '62 minutes');
    await roundAndSend();
    expect((await list()).map(({ rule, subject }) => [rule, subject])).toEqual([
      ['subscription-failing', `subscription/${refusing}`],
    ]);
    expect(mailbox.received[0]!.text).toMatch(
      new RegExp(`2 deliveries wait for another try[^]*HTTP 401[^]*--min-attempts 1 --subscription ${refusing}`),
    );
    await delivered(refusing, '1 minute');
    await roundAndSend();
    expect((await list('?state=open')).map(({ rule }) => rule)).toEqual([]);
  });

  it('tell of a receiver that refuses everything after successes that lie ahead, since the clock was set back', async () => {
    const id = await subscription();
    await delivered(id, '2 hours');
    await delivered(id, '-1 day');
    await fail(id, 3, '61 minutes');
    await roundAndSend();
    expect(await list()).toMatchObject([{ rule: 'subscription-failing', subject: `subscription/${id}` }]);
    await delivered(id, '1 minute');
    await roundAndSend();
    expect(await list('?state=open')).toEqual([]);
  });

  it('tell of a receiver that refuses everything, though it refused one or hundreds before, while others arrived', async () => {
    const [few, many, well] = await Promise.all([subscription(), subscription(), subscription()]);
    for (const id of [few, well]) await fail(id, 4, '3 hours', { acceptedHoursAgo: 3 });
    await fail(many, 4, '3 hours', { acceptedHoursAgo: 3, count: 150 });
    for (const id of [few, many]) await delivered(id, '2 hours');
    await delivered(well, '5 minutes');
    for (const id of [few, many]) await fail(id, 3, '61 minutes', { acceptedHoursAgo: 1.1, count: 2 });
    for (const id of [few, many, well]) await fail(id, 1, '2 minutes');
    await roundAndSend();
    expect((await list()).map(({ rule, subject }) => `${rule} ${subject}`).sort()).toEqual(
      [few, many].map((id) => `subscription-failing subscription/${id}`).sort(),
    );
    expect(mailbox.received[0]!.text).toContain('3 deliveries wait for another try');
    for (const id of [few, many]) await delivered(id, '1 minute');
    await roundAndSend();
    expect(await list('?state=open')).toEqual([]);
  });

  it.each([
    ['hundreds are scheduled for later that were accepted before', 400, undefined],
    ['any number of them was accepted before its last success', 1100, '2 hours'],
  ])('tell of a receiver that refuses everything, where %s', async (_, count, lastSuccess) => {
    const id = await subscription();
    await fail(id, 0, '0 minutes', { acceptedHoursAgo: 3, count });
    if (lastSuccess !== undefined) await delivered(id, lastSuccess);
    await fail(id, 2, '61 minutes', { acceptedHoursAgo: 1.1 });
    await roundAndSend();
    expect(await list()).toMatchObject([{ rule: 'subscription-failing', subject: `subscription/${id}` }]);
  });

  it('do not take a delivery for failing since it was accepted, where an operator had it sent again', async () => {
    const id = await subscription();
    await fail(id, 1, '1 minute', { before: 4 });
    await rounds.run(0);
    expect(await list()).toEqual([]);
  });

  it('tell operators, and no owner, of calls that could not be made, which are no attempts; and when they are made again', async () => {
    const id = await subscription({ alertEmail: 'owner@example.org' });
    const error = 'EGRESS_PROXY: ECONNREFUSED';
    const insert = (state: 'waiting' | 'queued' | 'held', columns: Record<string, string>) =>
      insertDeliveries(sql, { notifications: 1, subscriptionIds: [id], state, columns });
    const next = { next_at: "now() + interval '4 minutes'" };
    // Scheduled, sent again after a failure, refused, held, and held for too long: none of these is one.
    await insert('waiting', next);
    await insert('waiting', { ...next, replays: '1', last_error: `'${error}'` });
    await insert('waiting', { ...next, attempts: '1', failures: '1', last_error: `'${error}'` });
    await insert('held', { held_for: "'rate'", last_error: `'${error}'` });
    await insert('waiting', { ...next, held_for: "'rate'", last_error: `'${error}'` });
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 0, callsNotMade: { afterSeconds: 1 } });
    await roundAndSend();
    expect(await sql(`SELECT memory FROM alert_round WHERE memory ? 'notMadeSince'`)).toEqual([]);
    const [notificationId] = await insert('queued', { queued_at: 'now()' });
    await postgres.query(
      settleResults(dayOfId(notificationId!)),
      results.bind([
        {
          notificationId: notificationId!,
          subscriptionId: id,
          generation: 1,
          from: 'queued',
          state: 'waiting',
          attempt: null,
          delayMs: 240_000,
          reason: error,
        },
      ]),
    );
    await insert('queued', { queued_at: 'now()', last_error: `'${error}'` });
    await eventually(async () => {
      await roundAndSend();
      return (await list()).length > 0;
    });
    expect(await list()).toMatchObject([{ rule: 'calls-not-made', subject: `subscription/${id}` }]);
    const [mail] = mailbox.mailTo(operator);
    expect(mail!.subject).toBe('[Heraut] New: Calls are not made');
    expect(mail!.text).toMatch(
      new RegExp(`No call could be made for 2 deliveries for subscription ${id} of portal[^]*${error}`),
    );
    await sql(`UPDATE delivery SET state = 'delivered', attempts = 1, last_error = NULL`);
    await roundAndSend();
    expect(mailbox.mailTo(operator).at(-1)!.subject).toBe('[Heraut] Over: Calls are not made');
    expect(mailbox.mailTo('owner@example.org')).toEqual([]);
  });

  it('tell that it is over, once, to those that were told of it', async () => {
    const id = await subscription({ alertEmail: 'owner@example.org' });
    await die([id]);
    await roundAndSend();
    await sql(`UPDATE delivery SET state = 'delivered'`);
    await roundAndSend();
    await roundAndSend();
    for (const address of [operator, second, 'owner@example.org'])
      expect(mailbox.mailTo(address).map(({ subject }) => subject)).toEqual([
        '[Heraut] New: Dead letters',
        '[Heraut] Over: Dead letters',
      ]);
    expect(await list('?state=open')).toEqual([]);
    expect(await list('?state=resolved')).toMatchObject([{ resolvedAt: expect.any(String) }]);
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

  it('tell that it is over where a process that can tell nobody found that out', async () => {
    await die([await subscription({ alertEmail: 'owner@example.org' })]);
    await roundAndSend();
    await sql(`UPDATE delivery SET state = 'delivered'`);
    const { app } = admin.api;
    const mute = new AlertRounds(
      postgres,
      app.get(Config),
      { names: [], operators: [] } as unknown as AlertChannels,
      app.get(SubscriptionDirectory),
      app.get(ApplicationDirectory),
      app.get(Catalogue),
      app.get(Heartbeat),
    );
    expect(await mute.run(0)).toBe(true);
    await roundAndSend();
    for (const address of [operator, 'owner@example.org'])
      expect(mailbox.mailTo(address).map(({ subject }) => subject)).toEqual([
        '[Heraut] New: Dead letters',
        '[Heraut] Over: Dead letters',
      ]);
  });

  it('tell of one that comes back after they told that it is over, five times in 24 hours', async () => {
    const id = await subscription();
    for (let time = 1; time <= 7; time++) {
      await die([id]);
      await roundAndSend();
      await roundAndSend();
      expect(mailbox.mailTo(operator)).toHaveLength(time <= 5 ? 2 * time - 1 : 10);
      await sql(`UPDATE delivery SET state = 'delivered'`);
      await roundAndSend();
    }
    expect(await list()).toHaveLength(7);
    expect(mailbox.mailTo(operator).map(({ subject }) => subject)).toEqual(
      Array.from({ length: 5 }, () => ['[Heraut] New: Dead letters', '[Heraut] Over: Dead letters']).flat(),
    );
  });

  it('tell nothing of one that came back until the note that it was over is sent, and that it is still open a day later', async () => {
    const id = await subscription();
    await die([id]);
    await roundAndSend();
    await sql(`UPDATE delivery SET state = 'delivered'`);
    expect(await rounds.run(0)).toBe(true);
    await sql(`UPDATE delivery SET state = 'failed'`);
    for (const _ of ['comes back', 'goes on']) expect(await rounds.run(0)).toBe(true);
    expect(mailbox.mailTo(operator)).toHaveLength(1);
    expect(await list()).toMatchObject([
      { subject: `subscription/${id}`, resolvedAt: null },
      { subject: `subscription/${id}`, resolvedAt: expect.any(String) },
    ]);
    await sendAll(sender);
    await roundAndSend();
    await roundAndSend();
    expect(mailbox.mailTo(operator).map(({ subject }) => subject)).toEqual([
      '[Heraut] New: Dead letters',
      '[Heraut] Over: Dead letters',
      '[Heraut] New: Dead letters',
    ]);
    await sql(`UPDATE alert SET noted_at = noted_at - interval '1 day'`);
    await roundAndSend();
    expect(mailbox.mailTo(operator).at(-1)!.subject).toBe('[Heraut] Still open: Dead letters');
  });

  it('tell of one that comes back though another came and went, of which they told nothing, before they told of the end', async () => {
    const id = await subscription();
    await die([id]);
    await roundAndSend();
    for (const state of ['delivered', 'failed', 'delivered']) {
      await sql('UPDATE delivery SET state = $1', [state]);
      expect(await rounds.run(0)).toBe(true);
    }
    await sendAll(sender);
    await sql(`UPDATE delivery SET state = 'failed'`);
    for (const _ of ['comes back', 'goes on']) await roundAndSend();
    expect(await list()).toHaveLength(3);
    expect(mailbox.mailTo(operator).map(({ subject }) => subject)).toEqual([
      '[Heraut] New: Dead letters',
      '[Heraut] Over: Dead letters',
      '[Heraut] New: Dead letters',
    ]);
  });

  it('that come up soon after a note wait, and come together', async () => {
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 300 });
    await die([await subscription()]);
    await sql(`UPDATE alert_round SET noted_at = now() - interval '10 s'`);
    await roundAndSend();
    await die([await subscription()]);
    await roundAndSend();
    expect(mailbox.received).toEqual([]);
    await sql(`UPDATE alert_round SET noted_at = now() - interval '300 s'`);
    await roundAndSend();
    expect(mailbox.mailTo(operator).map(({ subject }) => subject)).toEqual(['[Heraut] New: Dead letters (2)']);
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

  it('tell an owner of what concerns its subscriptions only, and not why', async () => {
    const [own, disabled] = await Promise.all([1, 2].map(() => subscription({ alertEmail: 'owner@example.org' })));
    const other = await subscription();
    await die([own!, other]);
    await admin.api.app.get(SubscriptionsService).disable(disabled!);
    await sql(
      `INSERT INTO endpoint (address, opened_at, reason, failures, next_probe_at)
       VALUES ('https://receiver.example', now() - interval '1 hour', 'ECONNREFUSED', 5, now())`,
    );
    await roundAndSend();
    const [mail] = mailbox.mailTo('owner@example.org');
    expect(mail!.subject).toBe('[Heraut] New: Dead letters, A receiver does not work, A subscription is disabled');
    for (const id of [own, disabled]) expect(mail!.text).toContain(id);
    expect(mail!.text).not.toMatch(new RegExp(`${other}|ECONNREFUSED|503|/admin/|hidden`));
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 0, tellsOwners: false });
    await die([await subscription({ alertEmail: 'quiet@example.org' })]);
    await roundAndSend();
    expect([mailbox.mailTo('quiet@example.org'), mailbox.mailTo(operator)]).toMatchObject([[], [{}, {}]]);
  });

  it('go to the address of the application where the subscription has none', async () => {
    const clientId = randomUUID();
    const made = await admin.post('/admin/v1/applications', {
      clientId,
      label: 'Portal',
      alertEmail: 'team@example.org',
    });
    expect(made.json).toMatchObject({ alertEmail: 'team@example.org' });
    const id = await subscription({ owner: clientId });
    await die([id]);
    await roundAndSend();
    expect(mailbox.mailTo('team@example.org')).toHaveLength(1);
    await admin.patch(`/admin/v1/subscriptions/${id}`, { alertEmail: 'own@example.org' });
    await sql('DELETE FROM alert');
    await roundAndSend();
    expect([mailbox.mailTo('team@example.org'), mailbox.mailTo('own@example.org')]).toMatchObject([[{}], [{}]]);
  });

  it('are sent once by several processes that try at the same time', async () => {
    await die(
      await Promise.all(Array.from({ length: 3 }, () => subscription({ alertEmail: `${randomUUID()}@a.org` }))),
    );
    const others = Array.from(
      { length: 3 },
      () => new NoteSender(postgres, new AlertChannels(configured(admin), Date.now)),
    );
    const had = await Promise.all([rounds.run(0), rounds.run(60_000), rounds.run(60_000)]);
    expect(had.filter(Boolean)).toHaveLength(1);
    await Promise.all([sender, ...others].map(sendAll));
    expect(await sql('SELECT FROM alert_note WHERE sent_at IS NULL')).toEqual([]);
    expect(mailbox.received).toHaveLength(5);
    expect(new Set(mailbox.received.map(({ messageId }) => messageId)).size).toBe(5);
    expect(webhook.requests).toHaveLength(1);
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
    const size = configured(admin).DATABASE_POOL_SIZE;
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

  it('that a process claimed and did not send are sent by another when its lease ends', async () => {
    await die([await subscription()]);
    await rounds.run(0);
    await sql(`UPDATE alert_note SET attempts = 1, next_at = now() + interval '2 minutes' WHERE sent_at IS NULL`);
    await sendAll(sender);
    const before = mailbox.received.length;
    await sql('UPDATE alert_note SET next_at = now() WHERE sent_at IS NULL');
    await roundAndSend();
    expect([before, mailbox.received.length]).toEqual([0, 2]);
  });

  it('wait while mail is down, which is shown as degraded and stops nothing, and are sent once when it is back', async () => {
    const failedBefore = await mailsCounted('failed');
    await mailbox.stop();
    await die([await subscription()]);
    await roundAndSend();
    const ready = () => admin.api.get(`${admin.api.origin}/health/ready`, { token: null });
    const down = await ready();
    expect([down.status, down.json]).toMatchObject([
      200,
      { status: 'degraded', down: ['alerts'], parts: { alerts: { error: expect.stringContaining('tried again') } } },
    ]);
    expect(webhook.requests).toHaveLength(1);
    // The other one waits for the next turn: a server that hangs is asked once in each.
    expect((await sql('SELECT FROM alert_note WHERE last_error IS NOT NULL')).length).toBe(1);
    expect(await mailsCounted('failed')).toBeGreaterThan(failedBefore);
    await mailbox.listen();
    await sql('UPDATE alert_note SET next_at = now() WHERE next_at IS NOT NULL');
    await roundAndSend();
    await roundAndSend();
    expect(mailbox.received.map(({ to }) => to[0]).toSorted()).toEqual([operator, second]);
    expect((await ready()).json).toMatchObject({ status: 'ready' });
  });

  it('reach the others where one recipient is refused; that one is tried hourly, and given up after a day', async () => {
    mailbox.refused.set(second, 550);
    await die([await subscription()]);
    await roundAndSend();
    expect(mailbox.mailTo(operator)).toHaveLength(1);
    const [refused] = await sql<{ minutes: number; last_error: string }>(
      `SELECT extract(epoch FROM next_at - now()) / 60 AS minutes, last_error FROM alert_note WHERE sent_at IS NULL`,
    );
    expect(Number(refused!.minutes)).toBeGreaterThan(50);
    expect(refused!.last_error).toMatch(/550/);
    await sql(`UPDATE alert_note SET next_at = now(), created_at = now() - interval '1 day' WHERE sent_at IS NULL`);
    await roundAndSend();
    expect((await sql('SELECT FROM alert_note WHERE given_up_at IS NOT NULL')).length).toBe(1);
    const health = await admin.api.get(`${admin.api.origin}/health/ready`, { token: null });
    expect(health.json).toMatchObject({ parts: { alerts: { error: expect.stringContaining('given up') } } });
  });

  it('tell of new trouble though a note before is never taken, for which the end of its alerts waits', async () => {
    const ids = [await subscription(), await subscription()] as const;
    // As one whose limit it is above.
    const isTooLarge = (text: string) => text.includes('"opened"') && text.includes(ids[0]);
    webhook.always((request, response) => answer(isTooLarge(request.text) ? 413 : 204)(request, response));
    await die([ids[0]]);
    await roundAndSend();
    await sql('DELETE FROM delivery');
    await die([ids[1]]);
    webhook.requests.length = 0;
    await roundAndSend();
    const taken = webhook.requests.filter(({ text }) => !isTooLarge(text)).map(({ text }) => text);
    expect(taken.map((text) => JSON.parse(text).data.alerts)).toMatchObject([
      [{ kind: 'opened', subject: `subscription/${ids[1]}` }],
    ]);

    await sql('UPDATE alert_note SET next_at = NULL, given_up_at = now() WHERE last_error IS NOT NULL');
    webhook.requests.length = 0;
    await sendAll(sender);
    expect(webhook.requests.map(({ text }) => JSON.parse(text).data.alerts)).toMatchObject([
      [{ kind: 'resolved', subject: `subscription/${ids[0]}` }],
    ]);
  });

  it('that were given up told nobody: what is still open is told of anew, and a test that arrives ends the trouble', async () => {
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 0, repeatAfterHours: null });
    for (const address of [operator, second]) mailbox.refused.set(address, 550);
    webhook.always(answer(500));
    await die([await subscription()]);
    await roundAndSend();
    expect(await list()).toMatchObject([{ toldAt: expect.any(String) }]);
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 3600, repeatAfterHours: null });
    await sql(`UPDATE alert_note SET next_at = now(), created_at = now() - interval '1 day'`);
    await sendAll(sender);
    expect(await sql('SELECT FROM alert_note WHERE given_up_at IS NOT NULL')).toHaveLength(3);
    expect(await rounds.run(0)).toBe(true);
    expect(await list()).toMatchObject([{ toldAt: null }]);

    webhook.always(answer(204));
    mailbox.refused.clear();
    expect(await troubleWithAlerts(postgres)).toContain('given up');
    await admin.post('/admin/v1/alerts/test');
    expect(await troubleWithAlerts(postgres)).toBeUndefined();
    mailbox.received.length = 0;
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 0, repeatAfterHours: null });
    for (let round = 0; round < 2; round++) await roundAndSend();
    expect(mailbox.received.map(({ subject }) => subject)).toEqual(Array(2).fill('[Heraut] New: Dead letters'));
  });

  it('reach the others where one recipient is not accepted for now; that one is tried again soon', async () => {
    const [wrong, right] = ['a-wrong@example.org', 'right@example.org'];
    mailbox.refused.set(wrong, 450);
    await die([await subscription({ alertEmail: wrong }), await subscription({ alertEmail: right })]);
    await rounds.run(0);
    // It comes before the others.
    await sql(`UPDATE alert_note SET next_at = next_at - interval '1 s' WHERE recipient = $1`, [wrong]);
    await sendAll(sender);
    expect(mailbox.received.map(({ to }) => to[0]).toSorted()).toEqual([operator, right, second]);
    expect(
      await sql(
        `SELECT recipient, attempts, next_at < now() + interval '1 minute' AS soon FROM alert_note WHERE sent_at IS NULL`,
      ),
    ).toEqual([{ recipient: wrong, attempts: 1, soon: true }]);
  });

  it('wait for a server that refuses their sender, and are tried again soon', async () => {
    mailbox.refused.set('heraut@example.org', 553);
    await die([await subscription()]);
    await roundAndSend();
    const waiting = () =>
      sql(
        `SELECT last_error LIKE '%553%' AS tried, next_at < now() + interval '1 minute' AS soon
         FROM alert_note WHERE sent_at IS NULL ORDER BY last_error`,
      );
    expect(await waiting()).toEqual([
      { tried: true, soon: true },
      { tried: null, soon: true },
    ]);
    mailbox.refused.clear();
    await sql('UPDATE alert_note SET next_at = now() WHERE sent_at IS NULL');
    await sendAll(sender);
    expect([await waiting(), mailbox.received.length]).toEqual([[], 2]);
  });

  it('go to the operators of now where those of former settings were not reached, and leave no trouble behind', async () => {
    const [wrong, right, owner] = ['tpyo@example.org', 'typo@example.org', 'owner@example.org'];
    for (const address of [wrong, owner]) mailbox.refused.set(address, 550);
    const before = { ...configured(admin) };
    const { ALERT_WEBHOOK_URL: _webhook, ...mailOnly } = before;
    const processWith = (addresses: string[]) => {
      const channels = new AlertChannels({ ...mailOnly, ALERT_MAIL_TO: addresses }, Date.now);
      const parts = [SubscriptionDirectory, ApplicationDirectory, Catalogue, Heartbeat] as const;
      const [subscriptions, applications, catalogue, heartbeat] = parts.map((part) => admin.api.app.get<never>(part));
      const config = admin.api.app.get(Config);
      const its = new AlertRounds(postgres, config, channels, subscriptions!, applications!, catalogue!, heartbeat!);
      const own = new NoteSender(postgres, channels);
      return async () => {
        expect(await its.run(0)).toBe(true);
        await sendAll(own);
      };
    };
    const [former, present] = [processWith([wrong]), processWith([right])];
    await die([await subscription({ alertEmail: owner })]);
    await former();
    expect(await troubleWithAlerts(postgres)).toContain('tried again');
    await present(); // of the other, it leaves to a process that may still be there what is new
    expect([await troubleWithAlerts(postgres), mailbox.received.length]).toEqual([expect.any(String), 0]);

    await sql(`UPDATE alert_note SET created_at = created_at - interval '3 minutes'`);
    for (const round of [present, former, present]) await round();
    expect(mailbox.received.map(({ to, subject }) => [to[0], subject])).toEqual([
      [right, '[Heraut] New: Dead letters'],
    ]);
    expect(await troubleWithAlerts(postgres)).toBeUndefined();
    expect(await sql('SELECT recipient FROM alert_note WHERE sent_at IS NULL')).toEqual([{ recipient: owner }]);

    // Given up, and the alert was told to somebody else: nobody is told again.
    await sql(
      `INSERT INTO alert_note (id, channel, recipient, content, created_at, next_at, given_up_at)
       SELECT gen_random_uuid(), 'webhook', '', content, created_at - interval '1 day', NULL, now()
       FROM alert_note WHERE recipient = $1`,
      [right],
    );
    expect(await troubleWithAlerts(postgres)).toContain('given up');
    await present();
    expect([await troubleWithAlerts(postgres), mailbox.received.length]).toEqual([undefined, 1]);
  });

  it('that an owner cannot be sent are counted, and do not make this installation look degraded', async () => {
    const givenUpBefore = await mailsCounted('given-up');
    mailbox.refused.set('wrong@example.org', 550);
    await die([await subscription({ alertEmail: 'wrong@example.org' })]);
    await roundAndSend();
    expect(await sql('SELECT last_error FROM alert_note WHERE sent_at IS NULL')).toMatchObject([
      { last_error: expect.stringContaining('550') },
    ]);
    const ready = async () => (await admin.api.get(`${admin.api.origin}/health/ready`, { token: null })).json;
    expect(await ready()).toMatchObject({ status: 'ready' });
    await sql(`UPDATE alert_note SET next_at = now(), created_at = now() - interval '1 day' WHERE sent_at IS NULL`);
    await roundAndSend();
    expect(await sql('SELECT FROM alert_note WHERE given_up_at IS NOT NULL')).toHaveLength(1);
    expect(await ready()).toMatchObject({ status: 'ready' });
    expect(await mailsCounted('given-up')).toBeGreaterThan(givenUpBefore);
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

  describe('in the admin API', () => {
    it('can be tried: a test says what came of it by each channel', async () => {
      mailbox.refused.set(second, 550);
      const { json } = await admin.post('/admin/v1/alerts/test');
      expect(json.results).toEqual([
        { channel: 'webhook', recipient: null, isSent: true, error: null },
        { channel: 'mail', recipient: operator, isSent: true, error: null },
        { channel: 'mail', recipient: second, isSent: false, error: expect.stringContaining('550') },
      ]);
      expect(mailbox.mailTo(operator).map(({ subject }) => subject)).toEqual(['[Heraut] Test of alerts']);
      expect(JSON.parse(webhook.requests[0]!.text)).toMatchObject({ type: 'heraut.alerts.test' });
    });

    it('say whom they are told, and when somebody was', async () => {
      const { json } = await admin.get('/admin/v1/alert-recipients');
      const { origin } = new URL(webhook.url);
      expect(json).toEqual({ webhook: origin, mail: [operator, second], canMail: true });
      await die([await subscription()]);
      expect(await rounds.run(0)).toBe(true);
      const [{ toldAt, openedAt }] = (await list('?state=open')) as [Shown];
      expect(Date.parse(toldAt!)).toBeGreaterThanOrEqual(Date.parse(openedAt));
      await admin.put('/admin/v1/alert-rules', { groupSeconds: 3600 });
      const later = await subscription();
      await die([later]);
      expect(await rounds.run(0)).toBe(true);
      expect(await list(`?rule=dead-letters&subject=subscription/${later}`)).toMatchObject([{ toldAt: null }]);
    });

    it('have rules that are replaced as a whole, and are checked', async () => {
      const { json } = await admin.put('/admin/v1/alert-rules', {
        deadLetters: { count: 7 },
        repeatAfterHours: null,
      });
      expect(json).toMatchObject({
        deadLetters: { isEnabled: true, count: 7 },
        oldestDue: { isEnabled: true, afterSeconds: 300 },
        repeatAfterHours: null,
        groupSeconds: 30,
      });
      expect((await admin.get('/admin/v1/alert-rules')).json).toEqual(json);
      const refused = await admin.put('/admin/v1/alert-rules', {
        deadLetters: { count: 0, other: 1 },
        repeatAfterHours: 1,
      });
      expect([refused.status, refused.json.invalidParams.map(({ name }) => name).toSorted()]).toEqual([
        400,
        ['deadLetters.count', 'deadLetters.other', 'repeatAfterHours'],
      ]);
    });

    it('have rules, and fields of rules, of a newer version that a change by this one leaves as they are, and does not show', async () => {
      await admin.put('/admin/v1/alert-rules', { groupSeconds: 30 });
      await sql(
        `UPDATE alert_rules SET rules = rules || '{"ofNewer": {"afterSeconds": 7}, "oldestDue": {"afterSeconds": 60, "ofNewer": [1]}}'`,
      );
      const { json: shown } = await admin.get('/admin/v1/alert-rules');
      expect(shown).not.toHaveProperty('ofNewer');
      expect(shown).toMatchObject({ oldestDue: { isEnabled: true, afterSeconds: 60 } });
      const { status, json } = await admin.put('/admin/v1/alert-rules', { ...shown, groupSeconds: 40 });
      expect([status, json]).toEqual([200, { ...shown, groupSeconds: 40 }]);
      const stored = () => sql('SELECT rules FROM alert_rules');
      expect(await stored()).toMatchObject([
        { rules: { ofNewer: { afterSeconds: 7 }, oldestDue: { afterSeconds: 60, ofNewer: [1] }, groupSeconds: 40 } },
      ]);
      // Replaced as a whole, as far as it is known.
      await admin.put('/admin/v1/alert-rules', { oldestDue: { isEnabled: false } });
      expect(await stored()).toMatchObject([
        { rules: { oldestDue: { isEnabled: false, afterSeconds: 300, ofNewer: [1] }, groupSeconds: 30 } },
      ]);
      await sql('DELETE FROM alert_rules');
    });

    it('are listed page by page, newest first, by state and rule', async () => {
      await die(await Promise.all(Array.from({ length: 3 }, () => subscription())));
      await roundAndSend();
      const all = await list('?rule=dead-letters');
      expect(all.map(({ id }) => Number(id))).toEqual(all.map(({ id }) => Number(id)).toSorted((a, b) => b - a));
      const first = await admin.get('/admin/v1/alerts?limit=2');
      const rest = await admin.get(`/admin/v1/alerts?limit=2&cursor=${first.json.nextCursor}`);
      expect([...(first.json.alerts as Shown[]), ...(rest.json.alerts as Shown[])]).toEqual(all);
      expect(rest.json.nextCursor).toBeNull();
      expect(await list('?rule=ledger-disk')).toEqual([]);
      const { subject } = all[1]!;
      expect(await list(`?rule=dead-letters&subject=${subject}`)).toEqual([all[1]]);
      expect(await list(`?rule=dead-letters&subject=${subject}&cursor=${all[1]!.id}`)).toEqual([]);
      for (const query of [
        `subject=${subject}`,
        'rule=dead-letters&subject=',
        'cursor=x',
        'cursor=0',
        'rule=other',
        'state=closed',
        'limit=0',
      ])
        expect((await admin.get(`/admin/v1/alerts?${query}`)).status).toBe(400);
    });
  });

  it('go to an address that the owner of a subscription left with it, and is not shown again', async () => {
    const id = await subscription();
    const change = (alertEmail: unknown) => admin.api.patch(`/abonnement/${id}`, { alertEmail });
    const stored = async () =>
      (await sql<{ alert_email: string | null }>('SELECT alert_email FROM subscription WHERE id = $1', [id]))[0]!
        .alert_email;
    const { status, text } = await change('owner@example.org');
    expect([status, text.includes('owner@example.org'), await stored()]).toEqual([200, false, 'owner@example.org']);
    expect((await admin.api.patch(`/abonnement/${id}`, { kanalen: [{ naam: channel }] })).status).toBe(200);
    expect(await stored()).toBe('owner@example.org');
    for (const wrong of ['owner', 'a@b.nl\r\nBcc: c@d.nl', 5, ['a@b.nl']])
      expect((await change(wrong)).json.invalidParams).toMatchObject([{ name: 'alertEmail', code: 'invalid' }]);
    expect([(await change(null)).status, await stored()]).toEqual([200, null]);
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
    const channels = new AlertChannels(test.config.settings, Date.now);
    const rounds = new AlertRounds(
      test.postgres,
      test.config,
      channels,
      subscriptions,
      applications,
      new Catalogue(test.postgres),
      test.heartbeat,
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

const configured = (admin: AdminApi) => admin.api.app.get(Config).settings;
