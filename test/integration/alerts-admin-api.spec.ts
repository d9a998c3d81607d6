import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AlertRounds } from '../../src/alerts/rounds.service.js';
import type { AdminApi } from '../support/admin-api.js';
import { AlertScene, operator, second, type Shown } from '../support/alert-scene.js';
import type { Mailbox } from '../support/mailbox.js';
import type { Receiver } from '../support/receiver.js';

describe('alerts in the admin API', () => {
  const scene = new AlertScene();
  const { sql, roundAndSend, subscription, die, list } = scene;
  let mailbox: Mailbox;
  let webhook: Receiver;
  let admin: AdminApi;
  let rounds: AlertRounds;

  beforeAll(async () => {
    ({ mailbox, webhook, admin, rounds } = await scene.open());
  });
  beforeEach(() => scene.clear());
  afterAll(() => scene.close());

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
