import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import { auth, proofBody, proofsOf, wrong } from '../support/abonnements.js';
import { AdminApi } from '../support/admin-api.js';
import { lastPart } from '../support/last-part.js';
import { answer, protectedReceiver, Receiver } from '../support/receiver.js';

let admin: AdminApi;
let receiver: Receiver;

beforeAll(async () => {
  [admin, receiver] = await Promise.all([AdminApi.start(), Receiver.start()]);
});
afterAll(() => Promise.all([admin.close(), receiver.stop()]));
beforeEach(() => receiver.always(protectedReceiver));

interface Subscribed {
  url: string;
  id: string;
}

async function subscribe(): Promise<Subscribed> {
  const { json } = await admin.api.post('/abonnement', { callbackUrl: receiver.url, auth });
  receiver.requests.length = 0;
  return { url: json.url, id: lastPart(json.url) };
}

/** Each a new one. @returns its path in the admin API */
async function application(): Promise<string> {
  const { json } = await admin.post('/admin/v1/applications', { clientId: randomUUID(), label: 'Before' });
  return `/admin/v1/applications/${json.id}`;
}
async function channel(): Promise<string> {
  const { json } = await admin.api.post('/kanaal', { naam: randomUUID() });
  return `/admin/v1/channels/${lastPart(json.url)}`;
}
async function subscription(): Promise<string> {
  return `/admin/v1/subscriptions/${(await subscribe()).id}`;
}

describe('of two operators at once', () => {
  interface Shared {
    path: string;
    method?: string;
    /** Bodies of changes, each another one. */
    change: (nr: number) => object;
  }

  const shared: Record<string, () => Promise<Shared>> = {
    'an application': async () => ({
      path: await application(),
      change: (nr) => ({ label: `Label ${nr}` }),
    }),
    'a channel': async () => ({
      path: await channel(),
      change: (nr) => ({ maxAgeSeconds: 60 + nr }),
    }),
    'the retry policy': () =>
      Promise.resolve({ path: '/admin/v1/retry-policy', method: 'PUT', change: (nr) => ({ maxRetries: 10 + nr }) }),
    'the rules of alerts': () =>
      Promise.resolve({
        path: '/admin/v1/alert-rules',
        method: 'PUT',
        change: (nr) => ({ deadLetters: { count: 10 + nr } }),
      }),
  };

  it.each(Object.keys(shared))('one changes %s, and the other is told, with nothing changed', async (name) => {
    const { path, method = 'PATCH', change } = await shared[name]!();
    const read = await admin.get(path);
    const etag = read.headers.get('etag')!;
    expect(etag).toMatch(/^"[\w-]{22}"$/);
    expect((await admin.get(path)).headers.get('etag')).toBe(etag);
    const attempts = await Promise.all(
      [1, 2, 3].map((nr) => admin.call(method, path, { body: change(nr), headers: { 'if-match': etag } })),
    );
    expect(attempts.map(({ status }) => status).toSorted()).toEqual([200, 412, 412]);
    const won = attempts.find(({ status }) => status === 200)!;
    const lost = attempts.find(({ status }) => status === 412)!;
    expect(lost.json.code).toBe('changed-meanwhile');
    const now = await admin.get(path);
    expect([now.json, now.headers.get('etag')]).toEqual([won.json, won.headers.get('etag')]);
    // A caller that has read it again, names any state, or says nothing of what was read, changes it.
    for (const [nr, ifMatch] of [`"other", ${now.headers.get('etag')}`, '*', undefined].entries()) {
      const headers: Record<string, string> = ifMatch === undefined ? {} : { 'if-match': ifMatch };
      expect((await admin.call(method, path, { body: change(nr + 4), headers })).status).toBe(200);
    }
  });

  it('one changes an application, and the other neither makes it a new secret nor removes it', async () => {
    const path = await application();
    const headers = { 'if-match': (await admin.get(path)).headers.get('etag')! };
    await admin.patch(path, { label: 'Other' });
    expect((await admin.post(`${path}/rotate-secret`, undefined, { headers })).status).toBe(412);
    expect((await admin.delete(path, { headers })).status).toBe(412);
    const again = { 'if-match': (await admin.get(path)).headers.get('etag')! };
    const rotated = await admin.post(`${path}/rotate-secret`, undefined, { headers: again });
    expect(rotated.status).toBe(200);
    // Nor does another one, who has not seen that it has a new secret already.
    expect((await admin.post(`${path}/rotate-secret`, undefined, { headers: again })).status).toBe(412);
    expect((await admin.delete(path, { headers: again })).status).toBe(412);
    expect((await admin.get(path)).headers.get('etag')).toBe(rotated.headers.get('etag'));
    const last = { 'if-match': rotated.headers.get('etag')! };
    expect((await admin.delete(path, { headers: last })).status).toBe(204);
  });
});

describe('two operators of a subscription', () => {
  it('do not overwrite each other: the second is told that something changed, whatever it was', async () => {
    const path = await subscription();
    const tagOf = async () => (await admin.get(path)).headers.get('etag')!;
    const first = await tagOf();
    const changed = await admin.patch(path, { ratePerSecond: 5 }, { headers: { 'if-match': first } });
    expect([changed.status, changed.headers.get('etag')]).toEqual([200, await tagOf()]);
    const late = { headers: { 'if-match': first } };
    const before = receiver.requests.length;
    const auth = { authorization: { kind: 'verbatim', auth: 'Bearer other' } };
    for (const answered of [
      await admin.patch(path, { ratePerSecond: 6, callbackUrl: `${receiver.url}/new` }, late),
      await admin.patch(`${path}/credentials`, auth, late),
      await admin.patch(`${path}/credentials`, {}, late),
      await admin.post(`${path}/pause`, undefined, late),
      await admin.post(`${path}/resume`, undefined, late),
      await admin.post(`${path}/enable`, undefined, late),
      await admin.delete(path, late),
    ])
      expect([answered.status, answered.json.code]).toEqual([412, 'changed-meanwhile']);
    expect(receiver.requests).toHaveLength(before);
    expect((await admin.get(path)).json).toMatchObject({ ratePerSecond: 5, pausedAt: null });
    const second = await tagOf();
    await admin.patch(`${path}/credentials`, auth);
    expect(await tagOf()).not.toBe(second);
    expect((await admin.delete(path, { headers: { 'if-match': `${first}, ${await tagOf()}` } })).status).toBe(204);
  });

  it('do not overwrite the retry policy that the other has given it', async () => {
    const path = await subscription();
    const policy = `${path}/retry-policy`;
    const late = { headers: { 'if-match': (await admin.get(policy)).headers.get('etag')! } };
    const changed = await admin.put(policy, { maxRetries: 3 }, late);
    expect([changed.status, changed.headers.get('etag')]).toEqual([200, (await admin.get(policy)).headers.get('etag')]);
    expect((await admin.put(policy, { maxRetries: 4 }, late)).status).toBe(412);
    expect((await admin.delete(policy, late)).status).toBe(412);
    expect((await admin.get(policy)).json).toMatchObject({ overrides: { maxRetries: 3 } });
    const now = { headers: { 'if-match': changed.headers.get('etag')! } };
    expect((await admin.delete(policy, now)).status).toBe(204);
    expect((await admin.delete(policy, now)).status).toBe(412);
  });
});

/** Has the next call wait for an answer, which it gets from `release`; `called`: it has come. */
function slowly(): { called: Promise<void>; release: () => void } {
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const called = new Promise<void>((resolve) =>
    receiver.next((request, response) => {
      resolve();
      void released.then(() => protectedReceiver(request, response));
    }),
  );
  return { called, release };
}

/** The callback that it has, and its authorization. */
async function pairOf({ url, id }: Subscribed) {
  const { json } = await admin.api.get(url);
  const { auth: stored } = await admin.api.app.get(SubscriptionsService).get(id);
  return [json.callbackUrl, stored];
}

const conflict = { status: 409, json: { code: 'changed-while-proved' } };

describe('a subscription that is changed while the callback is called for another change', () => {
  it('is not overwritten by a PUT whose caller may have left before the newer one', async () => {
    const subscribed = await subscribe();
    const callbackUrl = `${receiver.url}/newer`;
    const { called, release } = slowly();
    const older = admin.api.put(subscribed.url, { callbackUrl: `${receiver.url}/older`, auth });
    await called;
    expect((await admin.api.put(subscribed.url, { callbackUrl, auth })).status).toBe(200);
    release();
    expect(await older).toMatchObject(conflict);
    expect(await pairOf(subscribed)).toEqual([callbackUrl, auth]);
  });

  it('never has a callback with an authorization that it was not shown', async () => {
    const subscribed = await subscribe();
    const { called, release } = slowly();
    const older = admin.api.patch(subscribed.url, { callbackUrl: `${receiver.url}/other` });
    await called;
    expect((await admin.api.patch(subscribed.url, { auth: 'Bearer other' })).status).toBe(200);
    release();
    expect(await older).toMatchObject(conflict);
    expect(await pairOf(subscribed)).toEqual([receiver.url, 'Bearer other']);
  });

  it('is changed all the same, and proved again, where an operator changed what its subscriber knows nothing of', async () => {
    const subscribed = await subscribe();
    const callbackUrl = `${receiver.url}/other`;
    const { called, release } = slowly();
    const change = admin.api.patch(subscribed.url, { callbackUrl });
    await called;
    const operator = await admin.patch(`/admin/v1/subscriptions/${subscribed.id}`, { ratePerSecond: 5 });
    expect(operator.status).toBe(200);
    release();
    expect((await change).json).toMatchObject({ callbackUrl });
    const twice = [undefined, auth, undefined, auth].map((shown) => [shown, proofBody]);
    expect(proofsOf(receiver)).toEqual(twice);
    const { json } = await admin.get(`/admin/v1/subscriptions/${subscribed.id}`);
    expect(json).toMatchObject({ callbackUrl, ratePerSecond: 5 });
  });

  it('stays disabled where its callback answered 410 since it was proved', async () => {
    const subscribed = await subscribe();
    const { called, release } = slowly();
    const change = admin.api.patch(subscribed.url, { auth: 'Bearer other' });
    await called;
    await admin.api.app.get(SubscriptionsService).disable(subscribed.id);
    receiver.always(answer(410));
    release();
    expect(wrong(await change).fields).toEqual(['nonFieldErrors invalid-callback-url']);
    const { json } = await admin.get(`/admin/v1/subscriptions/${subscribed.id}`);
    expect(json.disabledAt).not.toBeNull();
    expect(await pairOf(subscribed)).toEqual([receiver.url, auth]);
  });

  it('is changed by all who ask at once for what needs no call', async () => {
    const { url } = await subscribe();
    const naam = randomUUID();
    await admin.api.post('/kanaal', { naam });
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, nr) => admin.api.patch(url, { kanalen: nr % 2 ? [] : [{ naam }] })),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(receiver.requests).toEqual([]);
  });

  it('is left as it is by an operator who moves it, and by one who has read it before', async () => {
    const subscribed = await subscribe();
    const path = `/admin/v1/subscriptions/${subscribed.id}`;
    for (const isConditional of [false, true]) {
      const callbackUrl = `${receiver.url}/${isConditional}`;
      const tag = (await admin.get(path)).headers.get('etag')!;
      const { called, release } = slowly();
      const move = admin.patch(
        path,
        { callbackUrl: `${receiver.url}/operator` },
        { headers: isConditional ? { 'if-match': tag } : {} },
      );
      await called;
      expect((await admin.api.patch(subscribed.url, { callbackUrl })).status).toBe(200);
      release();
      const refused = { status: 412, json: { code: 'changed-meanwhile' } };
      expect(await move).toMatchObject(isConditional ? refused : conflict);
      expect(await pairOf(subscribed)).toEqual([callbackUrl, auth]);
    }
  });
});
