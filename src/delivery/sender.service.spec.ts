import { afterEach, describe, expect, it, vi } from 'vitest';
import { Tally } from '../activity/tally.js';
import { readSettings } from '../config/settings.js';
import type { Authorizations } from '../credentials/authorizations.service.js';
import { credentialsOf, noParts, verbatim, type NamedIdentity } from '../credentials/credentials.js';
import type { Unavailable } from '../credentials/unavailable.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import { SigningKey } from '../signing/signing-key.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { AttemptReporter } from './attempt-reporter.service.js';
import type { AttemptStates } from './attempt-states.js';
import { Sender } from './sender.service.js';
import type { WebhookClient, WebhookRequest, WebhookResponse } from './webhook-client.js';
import { longKey } from '../../test/support/long-key.js';
import { newDelivery } from '../../test/support/new-delivery.js';
import { answered } from '../../test/support/responses.js';
import { noListeners } from '../../test/support/no-listeners.js';
import { untraced } from '../../test/support/untraced.js';

const config = { settings: readSettings({}) };
const delivery = newDelivery({ generation: 2, attempts: 1, failures: 1, body: Buffer.from('{}') });
/** By the ledger's clock. */
const now = 1735689600_000;
const plain = {
  callbackUrl: 'http://receiver/',
  auth: 'Bearer x',
  credentials: verbatim,
  signingKeys: [],
  unreadable: null,
};

describe('a call to a receiver', () => {
  const requests: WebhookRequest[] = [];
  const kept: number[] = [];
  const refused: string[] = [];
  /** How many calls there were when another one was said to begin. */
  const begun: number[] = [];
  const ledgerClock = { now: () => now } as LedgerClock;
  const states = { put: (_key: unknown, _state: unknown, keepMs: number) => void kept.push(keepMs) };
  const reporter = new AttemptReporter(
    states as unknown as AttemptStates,
    ledgerClock,
    noListeners,
    new Tally(),
    config,
  );
  reporter.onModuleDestroy();
  let isStillWanted: () => Promise<boolean> = () => Promise.reject(new Error('nobody should ask'));
  let status = 204;
  let authorization: ReturnType<Authorizations['of']> = '';
  const client = {
    post: (request: WebhookRequest) => (requests.push(request), Promise.resolve(answered(status))),
  } as unknown as WebhookClient;
  const authorizations = {
    of: () => authorization,
    refused: (_: unknown, value: string) => void refused.push(value),
  } as unknown as Authorizations;
  const send = (parts: Partial<Subscription>) =>
    new Sender(client, authorizations, reporter, untraced, config).send(
      delivery,
      { timeoutSeconds: null, ...plain, ...parts } as Subscription,
      'at-least-once',
      { begun: () => void begun.push(requests.length), isStillWanted: () => isStillWanted() },
    );

  afterEach(() => {
    for (const list of [requests, kept, refused, begun]) list.length = 0;
    status = 204;
    isStillWanted = () => Promise.reject(new Error('nobody should ask'));
    vi.restoreAllMocks();
  });

  it.each([
    [null, 10_000],
    [0.2, 200],
    [45, 45_000],
    [300, 49_999], // this process has a shorter lease than the one where it was set
  ])('has the time that its subscription allows, and its live state is kept as long: %s s', (timeoutSeconds, ms) => {
    void send({ timeoutSeconds });
    expect(requests.map((request) => request.timeoutMs)).toEqual([ms]);
    expect(kept).toHaveLength(1);
    expect(kept[0]).toBeGreaterThan(ms);
  });

  it('carries what its subscription has, and none of that in place of what Heraut sends', async () => {
    const headers = { 'x-api-key': 'k', 'webhook-id': 'forged' };
    authorization = 'Bearer fresh';
    await send({ credentials: credentialsOf({ ...noParts, headers }) });
    expect(requests[0]?.headers).toMatchObject({
      'x-api-key': 'k',
      authorization: 'Bearer fresh',
      'webhook-id': delivery.notificationId,
    });
  });

  it('has no Authorization where its subscription has none, rather than an empty one', async () => {
    await send({ auth: '' });
    authorization = '';
    await send({ auth: '', credentials: credentialsOf({ ...noParts, headers: { 'x-api-key': 'k' } }) });
    expect(requests[1]!.headers).toMatchObject({ 'x-api-key': 'k' });
    expect(requests.map(({ headers }) => 'authorization' in headers)).toEqual([false, false]);
  });

  it('is not made while no token can be had, and counts where the client is refused', async () => {
    const trouble: Unavailable = { reason: 'no token', isRefused: false, forMs: 5, againInMs: 7 };
    const credentials = credentialsOf({ ...noParts, headers: { a: 'b' } });
    authorization = Promise.resolve(trouble);
    expect(await send({ credentials })).toMatchObject({
      kind: 'postponed',
      reason: 'no token',
      forMs: 5,
      againInMs: 7,
    });
    authorization = { ...trouble, isRefused: true };
    expect(await send({ credentials })).toMatchObject({
      kind: 'unanswered',
      reason: 'no token',
      wasSent: false,
      isOurs: true,
    });
    expect(requests).toEqual([]);
  });

  it('begins when its token is there, and not while none can be had: an endpoint is not blamed for that wait', async () => {
    const credentials = credentialsOf({ ...noParts, headers: { a: 'b' } });
    let tokenComes!: (token: string) => void;
    authorization = new Promise((resolve) => (tokenComes = resolve));
    const sent = send({ credentials });
    await Promise.resolve();
    expect(begun).toEqual([]);
    tokenComes('Bearer fresh');
    await sent;
    expect(begun).toEqual([0]);
    authorization = Promise.resolve({ reason: 'no token', isRefused: false, forMs: 5, againInMs: 7 });
    await send({ credentials });
    expect(begun).toEqual([0]);
    await send({});
    expect(begun).toEqual([0, 1]);
  });

  it('waits for a token no longer than half of its time', async () => {
    authorization = new Promise(() => {});
    const credentials = credentialsOf({ ...noParts, headers: { a: 'b' } });
    expect(await send({ credentials, timeoutSeconds: 0.1 })).toMatchObject({ kind: 'postponed', forMs: 0 });
    // Its receiver would have 0.02 s left, and would be blamed for taking longer.
    authorization = new Promise((resolve) => setTimeout(resolve, 80, 'Bearer late'));
    expect(await send({ credentials, timeoutSeconds: 0.1 })).toMatchObject({ kind: 'postponed', forMs: 0 });
    expect(requests).toEqual([]);
  });

  /** The outcome of a call whose token is there after so long, by the clock of the process. */
  async function sendAfter(waitedMs: number, timeoutSeconds = 30): Promise<WebhookResponse> {
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    let tokenComes!: (token: string) => void;
    authorization = new Promise((resolve) => (tokenComes = resolve));
    const sent = send({ credentials: credentialsOf({ ...noParts, headers: { a: 'b' } }), timeoutSeconds });
    now = waitedMs;
    tokenComes('Bearer fresh');
    return sent;
  }

  it('is made without a question where its token was there within a second', async () => {
    expect(await sendAfter(1000)).toMatchObject({ kind: 'answered' });
  });

  it('is made where it is still wanted after a longer wait for its token', async () => {
    isStillWanted = () => Promise.resolve(true);
    expect(await sendAfter(1001)).toMatchObject({ kind: 'answered' });
    expect(requests.map(({ timeoutMs }) => timeoutMs)).toEqual([30_000 - 1001]);
  });

  it.each<[string, () => Promise<boolean>]>([
    ['it is not wanted any more', () => Promise.resolve(false)],
    ['nobody can say whether it is still wanted', () => Promise.reject(new Error('the process stops'))],
    ['nobody says so within half of its time', () => new Promise(() => {})],
  ])('is not made, and costs no attempt, where after a longer wait for its token %s', async (_, answer) => {
    isStillWanted = answer;
    expect(await sendAfter(1001, 2.1)).toMatchObject({ kind: 'postponed', forMs: null, againInMs: 0 });
    expect([requests, begun]).toEqual([[], []]);
  });

  it('tells of a token that its receiver refused', async () => {
    [authorization, status] = ['Bearer old', 401];
    await send({ credentials: credentialsOf({ ...noParts, headers: { a: 'b' } }) });
    expect(refused).toEqual(['Bearer old']);
  });

  it('is not made with a certificate that has ended', async () => {
    const tls: NamedIdentity = { id: 'x', expiresAt: Date.parse('2020-01-01T00:00:00Z') };
    expect(await send({ credentials: { kind: 'verbatim', tls } })).toMatchObject({
      kind: 'unanswered',
      reason: 'the client certificate ended at 2020-01-01T00:00:00.000Z',
      isOurs: true,
    });
  });

  it('is not made with a key that takes too long to sign', async () => {
    const tls: NamedIdentity = { id: 'x', expiresAt: null, key: longKey(8192) };
    expect(await send({ credentials: { kind: 'verbatim', tls } })).toMatchObject({
      kind: 'unanswered',
      reason: expect.stringContaining('the key of the client certificate cannot be used: it is RSA of 8192 bits'),
      isOurs: true,
    });
    expect(requests).toEqual([]);
  });

  const secret = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=';
  const key = (given: string, endsAt: number | null = null) => new SigningKey('id', 'v1', given, endsAt);
  const unsigned = {
    'content-type': 'application/json',
    accept: '*/*',
    'user-agent': expect.stringMatching(/^Heraut\//),
    authorization: 'Bearer x',
    'webhook-id': delivery.notificationId,
    'webhook-attempt': '2',
  };

  it('is not signed without a key, or when the last one has ended', async () => {
    for (const signingKeys of [[], [key(secret, now)]]) await send({ signingKeys });
    expect(requests.map(({ headers }) => headers)).toEqual([unsigned, unsigned]);
  });

  it('is signed beside its authorization, as of the time when it begins', async () => {
    await send({ signingKeys: [key(secret), key(`whsec_${'/'.repeat(32)}`, now + 1)] });
    expect(requests[0]?.headers).toEqual({
      ...unsigned,
      'webhook-timestamp': String(now / 1000),
      'webhook-signature': expect.stringMatching(/^v1,\S{44} v1,\S{44}$/),
    });
  });

  it('is signed whatever else it carries, and nothing of that in place of the signature', async () => {
    authorization = 'Bearer fresh';
    const headers = { 'webhook-signature': 'forged', 'webhook-timestamp': '0' };
    await send({ signingKeys: [key(secret)], credentials: credentialsOf({ ...noParts, headers }) });
    expect(requests[0]?.headers).toMatchObject({
      authorization,
      'webhook-timestamp': String(now / 1000),
      'webhook-signature': expect.stringMatching(/^v1,\S{44}$/),
    });
  });

  it('is not made where a key cannot be used, and says so', async () => {
    expect(await send({ signingKeys: [key('whsec_broken')] })).toMatchObject({
      kind: 'unanswered',
      reason: expect.stringContaining('cannot be signed'),
      wasSent: false,
      isOurs: true,
    });
    expect(requests).toEqual([]);
  });

  it('is not made where its secrets cannot be decrypted', async () => {
    const reason = 'subscription.auth/1 is encrypted with the key old, which is not in the key ring';
    expect(await send({ unreadable: reason })).toMatchObject({ kind: 'postponed', reason });
    expect(requests).toEqual([]);
  });
});
