import { describe, expect, it } from 'vitest';
import type { StoredAlert } from './alert.js';
import { evaluateEveryMs, sendEveryMs } from './alert-loop.service.js';
import { defaultAlertRules } from './alert-rules.js';
import { mailText } from './mail-text.js';
import { mostNews } from './note.js';
import { dueNow, writeNotes } from './notes-due.js';
import { retryDelayMs } from './retry-note.js';
import { webhookPayload } from './webhook-payload.js';

const hourMs = 3_600_000;
const now = new Date(Date.UTC(2026, 10, 22, 3));
const ago = (ms: number) => new Date(now.getTime() - ms);

const alert = (parts: Partial<StoredAlert> = {}): StoredAlert =>
  ({
    id: '1',
    rule: 'dead-letters',
    subject: 'subscription/s',
    since: ago(hourMs),
    openedAt: ago(1000),
    resolvedAt: null,
    details: {
      subscriptionId: 's',
      owner: 'portal',
      receiver: 'https://receiver.example',
      count: 3,
      newestNotificationId: 'n',
      reason: 'HTTP 503',
    },
    lastToldAt: null,
    isTold: false,
    told: [],
    ...parts,
  }) as StoredAlert;

const kinds = (parts: Partial<StoredAlert>, rules: object = {}, lastNoteAt: Date | null = null) =>
  dueNow([alert(parts)], { ...defaultAlertRules, ...rules }, now, lastNoteAt).map(({ kind }) => kind);

describe('somebody is told of an alert', () => {
  it('when it is opened, and again only after 24 hours', () => {
    expect(kinds({})).toEqual(['opened']);
    expect(kinds({ isTold: true, lastToldAt: ago(24 * hourMs - 1) })).toEqual([]);
    expect(kinds({ isTold: true, lastToldAt: ago(24 * hourMs) })).toEqual(['still-open']);
    expect(kinds({ isTold: true, lastToldAt: ago(24 * hourMs) }, { repeatAfterHours: 48 })).toEqual([]);
    expect(kinds({ isTold: true, lastToldAt: ago(900 * hourMs) }, { repeatAfterHours: null })).toEqual([]);
  });

  it('not again within 24 hours where it was over in between, nor of its end then', () => {
    expect(kinds({ lastToldAt: ago(23 * hourMs) })).toEqual([]);
    expect(kinds({ lastToldAt: ago(23 * hourMs), resolvedAt: now })).toEqual([]);
    expect(kinds({ lastToldAt: ago(24 * hourMs) }, { repeatAfterHours: 48 })).toEqual(['opened']);
  });

  it('when it is over, if that was told of its beginning', () => {
    expect(kinds({ isTold: true, lastToldAt: ago(1), resolvedAt: now })).toEqual(['resolved']);
    expect(kinds({ resolvedAt: now })).toEqual([]);
  });

  it('a while after the note before, together with all that comes up meanwhile', () => {
    expect(kinds({}, { groupSeconds: 300 }, ago(299_000))).toEqual([]);
    expect(kinds({}, { groupSeconds: 300 }, ago(300_000))).toEqual(['opened']);
    expect(kinds({}, { groupSeconds: 0 }, now)).toEqual(['opened']);
  });

  it('also where the note before lies ahead, since Postgres’ clock was set back', () => {
    expect(kinds({}, { groupSeconds: 300 }, ago(-hourMs))).toEqual(['opened']);
    expect(kinds({ lastToldAt: ago(-hourMs) }, {}, ago(-hourMs))).toEqual(['opened']);
  });

  it('within a minute of the first sign of it, though another note was sent a moment before', () => {
    const { groupSeconds } = defaultAlertRules;
    expect(kinds({}, {}, ago(groupSeconds * 1000))).toEqual(['opened']);
    expect(groupSeconds * 1000 + evaluateEveryMs + sendEveryMs).toBeLessThan(60_000);
  });
});

describe('a note', () => {
  const operator = { channel: 'mail', address: 'ops@example.org' } as const;
  const webhook = { channel: 'webhook', address: '' } as const;
  const opened = (parts: Partial<StoredAlert> = {}) => ({ alert: alert(parts), kind: 'opened' as const });

  it('is one for each recipient, however many subjects a storm has', () => {
    const due = Array.from({ length: 250 }, (_, nr) => opened({ id: `${nr}`, subject: `subscription/${nr}` }));
    const owners = (each: StoredAlert) => (Number(each.id) % 2 === 0 ? ['even@example.org'] : []);
    const written = writeNotes(due, [webhook, operator], owners);
    expect(
      written.map(({ recipient, content }) => [
        recipient.address,
        content.news.length,
        content.more,
        content.alertIds.length,
      ]),
    ).toEqual([
      ['', mostNews, 150, 250],
      ['ops@example.org', mostNews, 150, 250],
      ['even@example.org', mostNews, 25, 125],
    ]);
    expect(mailText(written[1]!.content)).toMatchObject({
      subject: '[Heraut] New: Dead letters (100)',
      text: expect.stringContaining('And 150 more alerts.'),
    });
  });

  it('is one more for news of alerts of which its recipient was not sent the note before', () => {
    const over = { alert: alert({ id: '1', isTold: true, resolvedAt: now }), kind: 'resolved' as const };
    const due = [opened({ id: '2', subject: 'subscription/t' }), over];
    const written = writeNotes(
      due,
      [webhook, operator],
      () => [],
      (to, id) => to.channel === 'webhook' && id === '1',
    );
    expect(written.map(({ recipient, content }) => [recipient.address, ...content.alertIds])).toEqual([
      ['', '2'],
      ['', '1'],
      ['ops@example.org', '2', '1'],
    ]);
  });

  it('is not written where there is nothing to tell', () => {
    expect(writeNotes([], [operator], () => [])).toEqual([]);
  });

  it('goes to an owner only of what concerns its subscriptions, and once where it is an operator too', () => {
    const role = opened({ rule: 'role-missing', subject: 'role/worker', details: { role: 'worker' } } as never);
    expect(writeNotes([role], [], () => ['owner@example.org'])).toEqual([]);
    expect(writeNotes([opened()], [operator], () => [operator.address])).toHaveLength(1);
  });

  it('tells the end to those that were told of the beginning', () => {
    const over = { alert: alert({ isTold: true, resolvedAt: now, told: ['former@example.org'] }), kind: 'resolved' };
    const [written] = writeNotes([over as never], [], () => ['new@example.org']);
    expect(written!.recipient.address).toBe('former@example.org');
  });

  it('tells an operator why, and what to do; an owner not why, as that would tell of our networks', () => {
    const [forOperator, forOwner] = writeNotes([opened()], [operator], () => ['owner@example.org']).map(
      ({ content }) => mailText(content).text,
    );
    expect(forOperator).toMatch(/3 deliveries for subscription s of portal[^]*HTTP 503[^]*#alert-dead-letters/);
    expect(forOwner).toMatch(/3 deliveries for your subscription s/);
    expect(forOwner).not.toMatch(/503|admin|operations/);
  });

  it('promises operators that they are told again; not an owner, as that waits for the operators’ channel', () => {
    const [forOperator, forOwner] = writeNotes([opened()], [operator], () => ['owner@example.org']).map(
      ({ content }) => mailText(content).text,
    );
    expect(forOperator).toContain('you are told again, up to five times in 24 hours.');
    expect(forOwner).toContain('you may be told again, at most five times in 24 hours.');
    expect(forOwner).not.toContain('are told again');
  });

  it('names its installation by the address of the console, where that is known', () => {
    const url = 'https://heraut.example/nrc/console';
    const written = writeNotes([opened()], [operator, webhook], () => ['owner@example.org']);
    const of = (address: string) => written.find(({ recipient }) => recipient.address === address)!.content;
    for (const address of [operator.address, 'owner@example.org'])
      expect(mailText(of(address), url).subject).toBe('[Heraut] New: Dead letters at heraut.example');
    expect(mailText(of(operator.address), url).text).toContain(`\n${url}/alerts\n`);
    expect(mailText(of('owner@example.org'), url).text).toContain('\nSent by Heraut at heraut.example.\n');
    expect(mailText(of('owner@example.org'), url).text).not.toContain(url);
    expect(JSON.parse(webhookPayload(of(''), now, url)).data).toMatchObject({ console: `${url}/alerts` });
    expect(JSON.parse(webhookPayload(of(''), now)).data).toMatchObject({ console: null });
    const test = { ...of(''), kind: 'test' as const };
    expect(mailText(test, url).subject).toBe('[Heraut] Test of alerts at heraut.example');
  });

  it('is mail of plain lines: what others wrote stays within its line', () => {
    const evil = 'x\r\nTo: all@example.org\u2028\u0007y';
    const due = opened({ details: { ...alert().details, reason: evil, owner: evil } as never });
    const { subject, text } = mailText(writeNotes([due], [operator], () => [])[0]!.content);
    expect(subject).toBe('[Heraut] New: Dead letters');
    expect(text).not.toMatch(/^\s*To:/m);
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u2028]/u);
  });

  it('shows of an endpoint its origin only, as its URL may hold a key', () => {
    const due = opened({
      rule: 'endpoint-open',
      subject: 'endpoint/https://receiver.example/hook?key=hidden',
      details: { receiver: 'https://receiver.example', reason: 'HTTP 500', failures: 5 },
    } as never);
    const payload = webhookPayload(writeNotes([due], [webhook], () => [])[0]!.content, now);
    expect(payload).not.toContain('hidden');
    expect(JSON.parse(payload)).toMatchObject({
      type: 'heraut.alerts',
      timestamp: now.toISOString(),
      data: { alerts: [{ kind: 'opened', subject: 'endpoint/https://receiver.example', title: expect.any(String) }] },
    });
  });
});

describe('a note that could not be sent', () => {
  it('is tried again after 15 s, then less and less often, for a day', () => {
    const delays: number[] = [];
    let ageMs = 0;
    for (let attempts = 1; ; attempts++) {
      const delay = retryDelayMs(attempts, ageMs, false);
      if (delay === null) break;
      delays.push(delay);
      ageMs += delay;
    }
    expect(delays.slice(0, 8)).toEqual([15, 30, 60, 120, 240, 480, 900, 900].map((seconds) => seconds * 1000));
    expect(ageMs).toBeGreaterThan(23 * hourMs);
    expect(delays.length).toBeLessThan(110);
  });

  it('is tried again hourly where the recipient was refused', () => {
    expect(retryDelayMs(1, 0, true)).toBe(hourMs);
    expect(retryDelayMs(20, 23.5 * hourMs, true)).toBeNull();
  });
});
