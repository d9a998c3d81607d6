import { mkdirSync } from 'node:fs';
import { eventually } from '../../test/support/eventually.js';
import type { Installation } from '../../test/support/installation.js';
import { answer, Receiver } from '../../test/support/receiver.js';
import { expect, test } from './harness.js';

/* Pictures of every page, in both themes, for docs/console: `npm run screenshots`. */

const directory = new URL('../../docs/console/', import.meta.url).pathname;

test('pictures of every page', async ({ heraut, open }) => {
  test.setTimeout(300_000);
  mkdirSync(directory, { recursive: true });
  const { notification, subscription, channel, replay } = await fill(heraut);
  const pages: Record<string, string> = {
    overview: 'overview',
    notifications: 'notifications',
    notification: `notifications/${notification}`,
    tail: 'tail',
    subscriptions: 'subscriptions',
    subscription: `subscriptions/${subscription}`,
    endpoints: 'endpoints',
    'dead-letters': 'dead-letters',
    replays: 'replays',
    replay: `replays/${replay}`,
    'new-replay': 'replays/new',
    channels: 'channels',
    channel: `channels/${channel}`,
    applications: 'applications',
    alerts: 'alerts',
    audit: 'audit',
    settings: 'settings',
    'settings-configuration': 'settings?tab=configuration',
    'settings-installation': 'settings?tab=installation',
    publish: 'publish',
    welcome: 'welcome',
  };
  for (const [name, path] of Object.entries(pages)) {
    const page = await open(path);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await expect(page.locator('html')).toHaveAttribute('data-mantine-color-scheme', colorScheme);
      await expect(page.locator('main .mantine-Skeleton-root')).toHaveCount(0);
      await page.screenshot({ path: `${directory}${name}-${colorScheme}.png`, animations: 'disabled' });
    }
  }
});

/** A small municipality on a bad day: one receiver answers 500, one is down, one is paused. */
async function fill(heraut: Installation) {
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
    { length: 40 },
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
      (await heraut.delivery(ids[37]!, billing)).state !== 'queued',
    'the dead letters',
  );
  // Counted and measured every ten seconds.
  await eventually(async () => {
    const overview = (await heraut.api.call('GET', '/admin/v1/overview')).body as {
      deadLetters: { failed: { count: number } } | null;
    };
    return (overview.deadLetters?.failed.count ?? 0) > 0;
  }, 'the dead letters to be measured');
  const selection = { subscriptions: [billing], states: ['failed'] };
  const dryRun = await call('POST', '/admin/v1/replays/dry-run', { selection });
  const made = await call('POST', '/admin/v1/replays', {
    selection,
    ratePerSecond: 1,
    confirm: Number(dryRun['count']),
    note: 'the deploy was rolled back',
  });
  return { notification: ids[0]!, subscription: billing, channel: channelIds[0]!, replay: made['id']! };
}
