import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AlertChannels } from '../../src/alerts/alert-channels.js';
import { NoteSender } from '../../src/alerts/note-sender.service.js';
import { troubleWithAlerts } from '../../src/alerts/notes-are-sent.js';
import type { AlertRounds } from '../../src/alerts/rounds.service.js';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import type { AdminApi } from '../support/admin-api.js';
import { AlertScene, operator, second, sendAll } from '../support/alert-scene.js';
import type { Mailbox } from '../support/mailbox.js';
import { answer, type Receiver } from '../support/receiver.js';

describe('alerts', () => {
  const scene = new AlertScene();
  const { sql, roundAndSend, subscription, die, list, roundsBy } = scene;
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

  /** Of this process, since it began. */
  async function mailsCounted(result: string): Promise<number> {
    const { text } = await admin.api.get(`${admin.api.origin}/metrics`, { token: null });
    const line = new RegExp(`^heraut_alert_notes_total\\{channel="mail",result="${result}"\\} (\\d+)$`, 'm');
    return Number(line.exec(text)?.[1] ?? 0);
  }

  const ready = () => admin.api.get(`${admin.api.origin}/health/ready`, { token: null });

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
    expect((await ready()).json).toMatchObject({ parts: { alerts: { error: expect.stringContaining('given up') } } });
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
    const { ALERT_WEBHOOK_URL: _webhook, ...mailOnly } = scene.settings;
    const processWith = (addresses: string[]) => {
      const channels = new AlertChannels({ ...mailOnly, ALERT_MAIL_TO: addresses }, { now: Date.now } as LedgerClock);
      const [its, own] = [roundsBy(channels), new NoteSender(postgres, channels)];
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
    expect((await ready()).json).toMatchObject({ status: 'ready' });
    await sql(`UPDATE alert_note SET next_at = now(), created_at = now() - interval '1 day' WHERE sent_at IS NULL`);
    await roundAndSend();
    expect(await sql('SELECT FROM alert_note WHERE given_up_at IS NOT NULL')).toHaveLength(1);
    expect((await ready()).json).toMatchObject({ status: 'ready' });
    expect(await mailsCounted('given-up')).toBeGreaterThan(givenUpBefore);
  });
});
