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
