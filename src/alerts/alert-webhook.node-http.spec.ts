import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { answer, hang, Receiver, reset } from '../../test/support/receiver.js';
import { standStill } from '../../test/support/stand-still.js';
import { readSettings } from '../config/settings.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import { AlertChannels } from './alert-channels.js';
import { AlertWebhook } from './alert-webhook.node-http.js';
import type { NoteToSend } from './note.js';

class UnhurriedWebhook extends AlertWebhook {
  protected override readonly timeoutMs = 1000;
}

const note: NoteToSend = {
  id: randomUUID(),
  channel: 'webhook',
  address: '',
  content: { kind: 'test', audience: 'operator', news: [], more: 0 },
};
const running = new AbortController().signal;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await Receiver.start();
});
afterAll(() => receiver.stop());

const settings = (url = receiver.url) =>
  readSettings({
    ALERT_WEBHOOK_URL: url,
    ALERT_WEBHOOK_SECRET: `whsec_${Buffer.from(randomUUID()).toString('base64')}`,
  });

it('takes a note for sent whose answer lay in the socket while this process stood still', async () => {
  receiver.next((request, response) => {
    answer(204)(request, response);
    standStill(1500);
  });
  expect(await new UnhurriedWebhook(settings()).send(note, Date.now(), running)).toEqual({ isSent: true });
});

it('skips an unasked `100 Continue`: the note is sent, once', async () => {
  const before = receiver.requests.length;
  receiver.next((request, response) => {
    response.writeContinue();
    answer(204)(request, response);
  });
  expect(await new AlertWebhook(settings()).send(note, Date.now(), running)).toEqual({ isSent: true });
  expect(receiver.requests).toHaveLength(before + 1);
});

it.each([
  ['gives no answer in time', hang, 'gave no answer in time'],
  ['answers with a status that is no success', answer(503), 'answered 503'],
  ['closes the connection', reset, 'ECONNRESET: '],
])('tells why a note was not sent to a receiver that %s', async (_does, behaviour, reason) => {
  receiver.next(behaviour);
  const result = await new UnhurriedWebhook(settings()).send(note, Date.now(), running);
  expect(result).toEqual({ isSent: false, reason: expect.stringContaining(reason), failure: 'channel' });
});

it('says whose call it is: firewalls refuse one that does not', async () => {
  receiver.next(answer(204));
  await new AlertWebhook(settings()).send(note, Date.now(), running);
  const { headers } = receiver.requests.at(-1)!;
  expect(headers).toMatchObject({ 'user-agent': expect.stringMatching(/^Heraut\/\d/), accept: '*/*' });
});

it('posts a note with the time of the ledger, in its signature too, however wrong the clock of the process is', async () => {
  const ledgerMs = Date.parse('2025-06-01T12:00:00Z');
  receiver.next(answer(204));
  expect(await new AlertChannels(settings(), { now: () => ledgerMs } as LedgerClock).send(note, running)).toEqual({
    isSent: true,
  });
  const { headers, text } = receiver.requests.at(-1)!;
  expect(headers['webhook-timestamp']).toBe(String(ledgerMs / 1000));
  expect(JSON.parse(text)).toMatchObject({ timestamp: '2025-06-01T12:00:00.000Z' });
});

it('sends user and password of its URL as Basic, decoded, and none where the URL has none', async () => {
  const url = new URL(receiver.url);
  [url.username, url.password] = ['op%40s', 'p%C3%A9:%2F'];
  receiver.next(answer(204));
  await new AlertWebhook(settings(url.href)).send(note, Date.now(), running);
  expect(receiver.requests.at(-1)!.headers.authorization).toBe(`Basic ${Buffer.from('op@s:pé:/').toString('base64')}`);
  receiver.next(answer(204));
  await new AlertWebhook(settings()).send(note, Date.now(), running);
  expect(receiver.requests.at(-1)!.headers).not.toHaveProperty('authorization');
});
