import { expect } from '@playwright/test';
import { eventually } from '../../test/support/eventually.js';
import type { Installation } from '../../test/support/installation.js';
import { answer, Receiver } from '../../test/support/receiver.js';

/** Ids of what the pages show. */
export interface BadDay {
  /** Delivered to one, failed for another, held for a third. */
  notification: string;
  /** Its deliveries fail. */
  subscription: string;
  paused: string;
  channel: string;
  replay: string;
  /** A replay that has not begun. */
  scheduled: string;
  /** Of what its receivers are. */
  end: () => Promise<void>;
}

/**
 * A small municipality on a bad day: one receiver answers 500, one is down, one is paused, and what failed is sent
 * again, slowly.
 * @param count of its notifications
 */
export async function makeBadDay(heraut: Installation, count: number): Promise<BadDay> {
  const call = async (method: string, path: string, body?: object) => {
    const { status, body: given } = await heraut.api.call(method, path, { body });
    expect(status, `${method} ${path}: ${JSON.stringify(given)}`).toBeLessThan(300);
    return given as Record<string, string>;
  };
  const idOf = ({ url }: Record<string, string>) => url!.split('/').at(-1)!;
  const channels: Record<string, string[]> = {
    zaken: ['zaaktype', 'bronorganisatie'],
    besluiten: ['besluittype'],
    documenten: [],
  };
  const channelIds: string[] = [];
  for (const [naam, filters] of Object.entries(channels))
    channelIds.push(
      idOf(await call('POST', '/api/v1/kanaal', { naam, documentatieLink: 'https://example.org/' + naam, filters })),
    );
  const [well, failing, down] = await Promise.all([Receiver.start(), Receiver.start(), Receiver.start()]);
  const subscribe = async (receiver: Receiver, path: string, naam: string, filters = {}) =>
    idOf(
      await call('POST', '/api/v1/abonnement', {
        callbackUrl: `${receiver.url}${path}`,
        auth: 'Bearer example',
        kanalen: [{ naam, filters }],
      }),
    );
  const archive = await subscribe(well, '/archive', 'zaken', { bronorganisatie: '002220647' });
  await subscribe(well, '/portal', 'documenten');
  const billing = await subscribe(failing, '/billing', 'zaken');
  await subscribe(down, '/register', 'besluiten');
  const paused = await subscribe(well, '/reports', 'zaken');
  failing.always(answer(500, {}, 'after a deploy'));
  await down.stop();
  await call('POST', `/admin/v1/subscriptions/${paused}/pause`);
  await call('PUT', `/admin/v1/subscriptions/${billing}/retry-policy`, {
    maxRetries: 0,
    backoffFactor: 1,
    baseFactor: 1,
  });
  const objects = Array.from(
    { length: count },
    (_, number) => `https://zaken.example.org/zaken/api/v1/zaken/${1000 + number}`,
  );
  const ids: string[] = [];
  for (const [number, hoofdObject] of objects.entries()) {
    const kanaal = ['zaken', 'zaken', 'zaken', 'besluiten', 'documenten'][number % 5]!;
    const kenmerken =
      kanaal === 'zaken' ? { zaaktype: 'https://catalogi.example.org/zaaktypen/1', bronorganisatie: '002220647' } : {};
    const actie = ['create', 'update', 'partial_update'][number % 3];
    ids.push(
      (await heraut.publish(kanaal, { hoofdObject, resourceUrl: hoofdObject, resource: 'zaak', actie, kenmerken })).id,
    );
  }
  await heraut.becomes('delivered', ids[0]!, archive);
  await eventually(
    async () =>
      (await heraut.delivery(ids[0]!, billing)).state === 'failed' &&
      (await heraut.delivery(ids.at(-3)!, billing)).state !== 'queued',
    'the dead letters',
  );
  const selection = { subscriptions: [billing], states: ['failed'] };
  // As a client does it: a probe of a receiver that fails ends as one more dead letter, also between count and replay.
  const replayOf = async (fields: object) => {
    const answer = await eventually(async () => {
      const { count } = await call('POST', '/admin/v1/replays/dry-run', { selection });
      const body = { selection, ratePerSecond: 1, confirm: Number(count), ...fields };
      const given = await heraut.api.call('POST', '/admin/v1/replays', { body });
      return (given.body as { code?: string }).code !== 'selection-not-confirmed' && given;
    }, 'a selection that means as many as were counted');
    expect(answer.status, answer.text).toBe(201);
    return answer.body as { id: string };
  };
  const scheduled = await replayOf({ startAt: new Date(Date.now() + 36_000_000).toISOString(), note: 'for tonight' });
  const replay = await replayOf({ note: 'the deploy was rolled back' });
  const end = async () => {
    await Promise.all([well.stop(), failing.stop()]);
  };
  return {
    notification: ids[0]!,
    subscription: billing,
    paused,
    channel: channelIds[0]!,
    replay: replay.id,
    scheduled: scheduled.id,
    end,
  };
}
