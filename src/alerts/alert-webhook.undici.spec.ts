import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { answer, Receiver } from '../../test/support/receiver.js';
import { standStill } from '../../test/support/stand-still.js';
import { readSettings } from '../config/settings.js';
import { AlertChannels } from './alert-channels.js';
import { AlertWebhook } from './alert-webhook.undici.js';
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

it('says whose call it is: firewalls refuse one that does not', async () => {
  receiver.next(answer(204));
  await new AlertWebhook(settings()).send(note, Date.now(), running);
  const { headers } = receiver.requests.at(-1)!;
  expect(headers).toMatchObject({ 'user-agent': expect.stringMatching(/^Heraut\/\d/), accept: '*/*' });
});

it('posts a note with the time of the ledger, in its signature too, however wrong the clock of the process is', async () => {
  const ledgerMs = Date.parse('2025-06-01T12:00:00Z');
  receiver.next(answer(204));
  expect(await new AlertChannels(settings(), () => ledgerMs).send(note, running)).toEqual({ isSent: true });
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
