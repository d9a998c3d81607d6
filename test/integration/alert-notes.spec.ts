import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AlertChannels } from '../../src/alerts/alert-channels.js';
import type { StoredAlert } from '../../src/alerts/alert.js';
import { insertNotes, readUnsent, tellAnew } from '../../src/alerts/note-rows.js';
import { NoteSender } from '../../src/alerts/note-sender.service.js';
import {
  mostNews,
  type NewsKind,
  type NoteContent,
  type NoteToSend,
  type Recipient,
  type SendResult,
} from '../../src/alerts/note.js';
import { writeNotes } from '../../src/alerts/notes-due.js';
import { TestLedger } from '../support/ledger.js';
import { real } from '../support/stacks.js';

const running = new AbortController().signal;
const away: SendResult = { isSent: false, reason: 'away', failure: 'channel' };

describe('notes of alerts', () => {
  let test: TestLedger;
  let sender: NoteSender;
  /** The ids of those that were tried, and the answers to come: without any, each is sent. */
  let tried: string[];
  let answers: Map<string, SendResult>;

  beforeAll(async () => {
    test = await TestLedger.on(real);
  });
  afterAll(() => test.close());
  beforeEach(async () => {
    await test.sql('DELETE FROM alert_note');
    await test.sql('DELETE FROM alert');
    // Those of the tests below have numbers of their own.
    await test.sql('ALTER TABLE alert ALTER COLUMN id RESTART WITH 1000');
    [tried, answers] = [[], new Map()];
    const send = ({ id }: NoteToSend): Promise<SendResult> => {
      tried.push(id);
      return Promise.resolve(answers.get(id) ?? { isSent: true });
    };
    sender = new NoteSender(test.postgres, {
      names: ['webhook', 'mail'],
      operators: [],
      send,
    } as unknown as AlertChannels);
  });

  /** @param news what it tells of which alerts: 1 and 5, for one, are about the same subject */
  async function write(
    news: [NewsKind, alertId: string][],
    parts: Partial<NoteToSend & NoteContent> = {},
  ): Promise<string> {
    const { channel = 'webhook', address = '', audience = 'operator' } = parts;
    const content = {
      kind: 'alerts',
      audience,
      news: news.map(([kind, alertId]) => ({ kind, alertId })),
      more: 0,
    } as unknown as NoteContent;
    await test.sql(
      `INSERT INTO alert (id, rule, subject, since, details, resolved_at) OVERRIDING SYSTEM VALUE
       SELECT id, 'role-missing', 'role/' || id % 4, now(), '{}', now() FROM unnest($1::bigint[]) AS id
       ON CONFLICT DO NOTHING`,
      [news.map(([, alertId]) => alertId)],
    );
    const id = randomUUID();
    await test.postgres.transaction((query) => insertNotes(query, [{ id, channel, address, content }]));
    return id;
  }
  const sendAll = () => sender.sendDue('webhook', running);
  const changeTime = (id: string, next: string) =>
    test.sql(`UPDATE alert_note SET next_at = now() + $2::interval WHERE id = $1`, [id, next]);

  it('that an alert is over are sent after the one that it began, whose next try was later', async () => {
    const opened = await write([['opened', '1']]);
    answers.set(opened, away);
    await sendAll();
    await changeTime(opened, '15 minutes');
    answers.clear();
    const over = await write([['resolved', '1']]);
    expect([await sendAll(), tried]).toEqual([2, [opened, opened, over]]);
  });

  it('that an alert came back are sent after the one that it was over', async () => {
    const over = await write([['resolved', '1']]);
    answers.set(over, away);
    await sendAll();
    await changeTime(over, '100 seconds');
    const back = await write([['opened', '5']]);
    const isUnsent = await readUnsent((statement, values) => test.postgres.query(statement, values), ['5']);
    const webhook: Recipient = { channel: 'webhook', address: '' };
    expect([isUnsent(webhook, '5'), isUnsent({ ...webhook, address: 'x' }, '5')]).toEqual([true, false]);
    expect([await sendAll(), tried]).toEqual([0, [over]]);
    answers.clear();
    await changeTime(over, '0');
    expect([await sendAll(), tried.slice(1)]).toEqual([2, [over, back]]);
  });

  it('that an alert is over make its coming back news where they were sent to operators, or there are none', async () => {
    await write([['resolved', '1']], { audience: 'owner', channel: 'mail', address: 'owner@example.org' });
    await test.sql('UPDATE alert_note SET next_at = NULL, sent_at = now()');
    await test.sql('UPDATE alert SET is_noted = true, is_end_noted = true, noted_at = now()');
    await test.sql(
      'INSERT INTO alert (rule, subject, since, details, noted_at) SELECT rule, subject, now(), details, noted_at FROM alert',
    );
    const isNews = async (operators: readonly Recipient[]) => {
      await test.postgres.transaction((query) => tellAnew(query, operators));
      return (await test.sql('SELECT FROM alert WHERE resolved_at IS NULL AND noted_at IS NULL')).length === 1;
    };
    const webhook: Recipient = { channel: 'webhook', address: '' };
    expect(await isNews([webhook])).toBe(false);
    await test.sql(`UPDATE alert_note SET content = content || '{"audience": "operator"}'`);
    expect(await isNews([webhook])).toBe(true);
    await test.sql(`UPDATE alert_note SET content = content || '{"audience": "owner"}'`);
    await test.sql('UPDATE alert SET noted_at = now() WHERE resolved_at IS NULL');
    expect([await isNews([webhook]), await isNews([])]).toEqual([false, true]);
  });

  it('of other alerts, or to others, wait for none that cannot be sent', async () => {
    const opened = await write([['opened', '1']]);
    answers.set(opened, away);
    await sendAll();
    await changeTime(opened, '100 seconds');
    const over = await write([['resolved', '1']]);
    const [other, elsewhere] = [await write([['opened', '2']]), await write([['resolved', '1']], { address: 'x' })];
    expect([await sendAll(), tried.slice(1).sort()]).toEqual([2, [other, elsewhere].sort()]);
    // Given up, nothing waits for it any more.
    await test.sql('UPDATE alert_note SET next_at = NULL, given_up_at = now() WHERE id = $1', [opened]);
    expect([await sendAll(), tried.at(-1)]).toEqual([1, over]);
  });

  it('leave to another process what it has in hand, and the end of an alert with it', async () => {
    const opened = await write([['opened', '1']]);
    await test.sql(`UPDATE alert_note SET attempts = 1, next_at = now() + interval '2 minutes'`);
    await write([['resolved', '1']]);
    expect([await sendAll(), tried]).toEqual([0, []]);
    await changeTime(opened, '0');
    expect([await sendAll(), tried[0]]).toEqual([2, opened]);
  });

  it('that wait for another try are tried as soon as their recipient is sent another one', async () => {
    const ids = [await write([['opened', '1']]), await write([['opened', '2']])];
    for (const id of ids) await changeTime(id, '15 minutes');
    const later = await write([['opened', '3']]);
    expect([await sendAll(), tried[0], tried.slice(1).sort()]).toEqual([3, later, ids.sort()]);
  });

  it('to operators go before those to owners, however long these have been due', async () => {
    const owners = [];
    for (const nr of [1, 2, 3])
      owners.push(await write([['opened', String(nr)]], { audience: 'owner', address: `owner-${nr}` }));
    for (const id of owners) await changeTime(id, '-1 minute');
    const first = await write([['opened', '4']]);
    expect([await sendAll(), tried[0], tried.slice(1).sort()]).toEqual([4, first, owners.sort()]);
  });

  describe('that reached nobody leave untold all their alerts, also those that they only count', () => {
    const webhook: Recipient = { channel: 'webhook', address: '' };
    const count = mostNews + 50;
    let due: { alert: StoredAlert; kind: 'opened' | 'resolved' }[];
    const tell = async () => {
      const notes = writeNotes(due, [webhook], () => []);
      await test.postgres.transaction((query) =>
        insertNotes(
          query,
          notes.map(({ recipient, content }) => ({ ...recipient, id: randomUUID(), content })),
        ),
      );
    };

    beforeEach(async () => {
      const opened = await test.sql<StoredAlert>(
        `INSERT INTO alert (rule, subject, since, details, is_noted, noted_at)
         SELECT 'role-missing', 'role/' || nr, now(), jsonb_build_object('role', nr), true, now()
         FROM generate_series(1, $1::int) AS nr
         RETURNING id, rule, subject, since, opened_at AS "openedAt", resolved_at AS "resolvedAt", details, told`,
        [count],
      );
      due = opened.map((alert) => ({ alert, kind: 'opened' as const }));
      await tell();
    });
    const untold = async (operators: readonly Recipient[]) => {
      await test.postgres.transaction((query) => tellAnew(query, operators));
      return (await test.sql('SELECT FROM alert WHERE NOT is_noted AND noted_at IS NULL')).length;
    };

    it('when they were given up', async () => {
      expect(await untold([webhook])).toBe(0);
      await test.sql('UPDATE alert_note SET next_at = NULL, given_up_at = now()');
      expect(await untold([webhook])).toBe(count);
    });

    it('and so those that have come back since', async () => {
      await test.sql('UPDATE alert SET resolved_at = now(), is_end_noted = true');
      due = due.map(({ alert }) => ({ alert, kind: 'resolved' }));
      await tell();
      await test.sql(
        `INSERT INTO alert (rule, subject, since, details, noted_at)
         SELECT rule, subject, now(), details, noted_at FROM alert`,
      );
      expect(await untold([webhook])).toBe(0);
      await test.sql(`UPDATE alert_note SET created_at = now() - interval '1 hour'`);
      expect(await untold([{ channel: 'mail', address: 'ops@example.org' }])).toBe(count);
      // Nor do they keep those quiet that come later.
      expect(await test.sql('SELECT FROM alert WHERE noted_at IS NOT NULL')).toEqual([]);
    });

    it('when they were to operators of former settings', async () => {
      await test.sql(`UPDATE alert_note SET created_at = now() - interval '1 hour'`);
      expect(await untold([{ channel: 'mail', address: 'ops@example.org' }])).toBe(count);
    });
  });

  it('lose of an alert that the version before does not know that alone, by the statements of the page', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/running.md'), 'utf8');
    const [statements] = /BEGIN;[^`]*'calls-not-made'[^`]*COMMIT;/.exec(page)!;
    const insert = (rule: string, details: object) =>
      test.sql<StoredAlert>(
        `INSERT INTO alert (rule, subject, since, details, is_noted, noted_at) VALUES ($1, 'of ' || $1, now(), $2, true, now())
         RETURNING id, rule, subject, since, opened_at AS "openedAt", resolved_at AS "resolvedAt", details, told`,
        [rule, details],
      );
    const [late] = await insert('oldest-due', { state: 'queued' });
    const [notMade] = await insert('calls-not-made', { count: 1 });
    const [role] = await insert('role-missing', { role: 'worker' });
    const webhook: Recipient = { channel: 'webhook', address: '' };
    const told = async (...alerts: StoredAlert[]): Promise<string> => {
      const due = alerts.map((alert) => ({ alert, kind: 'opened' as const }));
      const [note] = writeNotes(due, [webhook], () => []);
      const id = randomUUID();
      await test.postgres.transaction((query) => insertNotes(query, [{ ...webhook, id, content: note!.content }]));
      return id;
    };
    await told(notMade!); // the next one is sent after it
    const mixed = await told(late!, notMade!, role!);
    await test.sql(statements);
    expect(await test.sql('SELECT rule FROM alert ORDER BY id')).toEqual([
      { rule: 'oldest-due' },
      { rule: 'role-missing' },
    ]);
    expect(
      await test.sql(
        `SELECT id, jsonb_path_query_array(content, '$.news[*].rule') AS rules, content -> 'audience' AS audience FROM alert_note`,
      ),
    ).toEqual([{ id: mixed, rules: ['oldest-due', 'role-missing'], audience: 'operator' }]);
    expect([await sendAll(), tried]).toEqual([1, [mixed]]);
  });
});
