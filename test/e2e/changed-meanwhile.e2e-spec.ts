import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { AdminApi } from '../support/admin-api.js';
import { lastPart } from '../support/last-part.js';
import { Receiver } from '../support/receiver.js';

let admin: AdminApi;
let receiver: Receiver;

beforeAll(async () => {
  [admin, receiver] = await Promise.all([AdminApi.start(), Receiver.start()]);
});
afterAll(() => Promise.all([admin.close(), receiver.stop()]));

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
  const { json } = await admin.api.post('/abonnement', { callbackUrl: receiver.url, auth: 'Bearer of-the-receiver' });
  return `/admin/v1/subscriptions/${lastPart(json.url)}`;
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
