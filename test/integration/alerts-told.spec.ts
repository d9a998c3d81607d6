import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { AlertChannels } from '../../src/alerts/alert-channels.js';
import { NoteSender } from '../../src/alerts/note-sender.service.js';
import type { AlertRounds } from '../../src/alerts/rounds.service.js';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import type { AdminApi } from '../support/admin-api.js';
import { AlertScene, operator, second, sendAll } from '../support/alert-scene.js';
import type { Mailbox } from '../support/mailbox.js';
import type { Receiver } from '../support/receiver.js';

describe('alerts', () => {
  const scene = new AlertScene();
  const { sql, roundAndSend, subscription, die, list, roundsBy } = scene;
  let mailbox: Mailbox;
  let webhook: Receiver;
  let admin: AdminApi;
  let rounds: AlertRounds;
  let sender: NoteSender;
  let postgres: Postgres;
  let channel: string;
  let secret: string;

  beforeAll(async () => {
    ({ mailbox, webhook, admin, rounds, sender, postgres, channel, secret } = await scene.open());
  });
  beforeEach(() => scene.clear());
  afterAll(() => scene.close());

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

  it('are posted with a signature of Standard Webhooks, also to a private network', async () => {
    await die([await subscription()]);
    await roundAndSend();
    const [call] = webhook.requests;
    const verified = new Webhook(secret).verify(call!.text, call!.headers as never);
    expect(verified).toMatchObject({ type: 'heraut.alerts', data: { alerts: [{ rule: 'dead-letters' }] } });
    const forged = { ...call!.headers, 'webhook-id': randomUUID() } as never;
    expect(() => new Webhook(secret).verify(call!.text, forged)).toThrow('No matching signature');
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

  it('tell nobody that it is over where their rule was switched off, and again what is wrong when it is on', async () => {
    const id = await subscription({ alertEmail: 'owner@example.org' });
    await die([id]);
    await roundAndSend();
    const everybody = [operator, second, 'owner@example.org'];
    const subjects = () => everybody.map((address) => mailbox.mailTo(address).map(({ subject }) => subject));
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 0, deadLetters: { isEnabled: false } });
    for (const _ of ['off', 'off still']) await roundAndSend();
    expect(await list()).toMatchObject([{ resolvedAt: expect.any(String), toldAt: expect.any(String) }]);
    expect(subjects()).toEqual(everybody.map(() => ['[Heraut] New: Dead letters']));
    expect(webhook.requests).toHaveLength(1);
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 0 });
    for (const _ of ['on', 'on still']) await roundAndSend();
    await sql(`UPDATE delivery SET state = 'delivered'`);
    for (const _ of ['over', 'over still']) await roundAndSend();
    expect(subjects()[0]).toEqual([
      '[Heraut] New: Dead letters',
      '[Heraut] New: Dead letters',
      '[Heraut] Over: Dead letters',
    ]);
  });

  it('tell no owner that it is over once owners are not told any more', async () => {
    await die([await subscription({ alertEmail: 'owner@example.org' })]);
    await roundAndSend();
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 0, tellsOwners: false });
    await sql(`UPDATE delivery SET state = 'delivered'`);
    await roundAndSend();
    expect(mailbox.mailTo(operator)).toHaveLength(2);
    expect(mailbox.mailTo('owner@example.org')).toHaveLength(1);
  });

  it('do not keep an end that nobody is to be told of, where there are owners alone', async () => {
    await die([await subscription({ alertEmail: 'owner@example.org' })]);
    const owners = roundsBy({ names: ['mail'], operators: [] } as unknown as AlertChannels);
    await owners.run(0);
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 0, tellsOwners: false });
    await sql(`UPDATE delivery SET state = 'delivered'`);
    await owners.run(0);
    expect(await sql('SELECT is_end_noted FROM alert')).toEqual([{ is_end_noted: true }]);
    // Nothing of it is told later, when owners are told again.
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 0 });
    await owners.run(0);
    expect(await sql('SELECT FROM alert_note')).toHaveLength(1);
  });

  it('tell that it is over where a process that can tell nobody found that out', async () => {
    await die([await subscription({ alertEmail: 'owner@example.org' })]);
    await roundAndSend();
    await sql(`UPDATE delivery SET state = 'delivered'`);
    const mute = roundsBy({ names: [], operators: [] } as unknown as AlertChannels);
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

  it('are sent once by several processes that try at the same time', async () => {
    await die(
      await Promise.all(Array.from({ length: 3 }, () => subscription({ alertEmail: `${randomUUID()}@a.org` }))),
    );
    const others = Array.from(
      { length: 3 },
      () => new NoteSender(postgres, new AlertChannels(scene.settings, { now: Date.now } as LedgerClock)),
    );
    const had = await Promise.all([rounds.run(0), rounds.run(60_000), rounds.run(60_000)]);
    expect(had.filter(Boolean)).toHaveLength(1);
    await Promise.all([sender, ...others].map(sendAll));
    expect(await sql('SELECT FROM alert_note WHERE sent_at IS NULL')).toEqual([]);
    expect(mailbox.received).toHaveLength(5);
    expect(new Set(mailbox.received.map(({ messageId }) => messageId)).size).toBe(5);
    expect(webhook.requests).toHaveLength(1);
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
    expect(mail!.text).not.toMatch(new RegExp(`${other}|ECONNREFUSED|\\b503\\b|/admin/|hidden`));
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
