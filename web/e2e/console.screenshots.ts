import { mkdirSync } from 'node:fs';
import { eventually } from '../../test/support/eventually.js';
import { makeBadDay } from './bad-day.js';
import { expect, test } from './harness.js';

/* Pictures of every page, in both themes, for docs/console: `npm run screenshots`. */

const directory = new URL('../../docs/console/', import.meta.url).pathname;

test('pictures of every page', async ({ heraut, open }) => {
  test.setTimeout(300_000);
  mkdirSync(directory, { recursive: true });
  const { notification, subscription, channel, replay, end } = await makeBadDay(heraut, 40);
  // Counted and measured every ten seconds.
  await eventually(async () => {
    const overview = (await heraut.api.call('GET', '/admin/v1/overview')).body as {
      deadLetters: { failed: { count: number } } | null;
    };
    return (overview.deadLetters?.failed.count ?? 0) > 0;
  }, 'the dead letters to be measured');
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
  await end();
});
