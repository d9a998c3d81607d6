import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { QueryRunner } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { ForgetAnswersInAlerts1763625600031 } from '../../migrations/1763625600031-forget-answers-in-alerts.js';
import { addActivity } from '../../src/activity/activity-rows.js';
import type { AlertRounds } from '../../src/alerts/rounds.service.js';
import type { Postgres, Query } from '../../src/infra/postgres/postgres.js';
import { dayOfId } from '../../src/ledger/partitions.js';
import { results, settleResults } from '../../src/ledger/settle.service.js';
import type { AdminApi } from '../support/admin-api.js';
import { AlertScene, answered, operator } from '../support/alert-scene.js';
import { eventually } from '../support/eventually.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';
import type { Mailbox } from '../support/mailbox.js';

describe('alerts', () => {
  const scene = new AlertScene();
  const { sql, roundAndSend, subscription, die, list } = scene;
  let mailbox: Mailbox;
  let admin: AdminApi;
  let rounds: AlertRounds;
  let postgres: Postgres;
  let channel: string;

  beforeAll(async () => {
    ({ mailbox, admin, rounds, postgres, channel } = await scene.open());
  });
  beforeEach(() => scene.clear());
  afterAll(() => scene.close());

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

  /** All that is kept of alerts and notes. */
  const stored = async (): Promise<string> => {
    const [row] = await sql<{ text: string }>(
      `SELECT concat((SELECT string_agg(details::text, ' ') FROM alert), ' ',
         (SELECT string_agg(content::text, ' ') FROM alert_note)) AS text`,
    );
    return row!.text;
  };

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
});
