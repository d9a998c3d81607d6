import type { Page } from '@playwright/test';
import { readFileSync } from 'node:fs';
import type { BadDay } from './bad-day.js';
import { expect } from './harness.js';

/** A state of a page that has an address. */
export interface Place {
  /** Below /console/. */
  at: string;
  heading: string | RegExp;
  /** That is open. */
  tab?: string;
}

/** The addresses of the pages that somebody sees who is signed in, as src/routes.tsx has them. */
export const routes = [
  ...readFileSync(new URL('../src/routes.tsx', import.meta.url), 'utf8').matchAll(/^ {2}page\('([^']+)'/gm),
].map(([, path]) => path!);

/** Every page, in all of its tabs. */
export function placesOf(day: BadDay): Record<string, Place[]> {
  const inTabs = (at: string, heading: Place['heading'], tabs: Record<string, string>): Place[] =>
    Object.entries(tabs).map(([name, tab]) => ({ at: `${at}?tab=${name}`, heading, tab }));
  const one = (at: string, heading: Place['heading']): Place[] => [{ at, heading }];
  return {
    '/overview': one('overview', 'Overview'),
    '/welcome': one('welcome', 'First steps'),
    '/endpoints': one('endpoints', 'Endpoints'),
    '/notifications': one('notifications', 'Notifications'),
    '/notifications/$id': inTabs(`notifications/${day.notification}`, 'create zaak', {
      deliveries: 'Deliveries',
      story: 'Story',
      body: 'Body',
      explain: 'Why, or why not',
    }),
    '/tail': one('tail', 'Live tail'),
    '/subscriptions': one('subscriptions', 'Subscriptions'),
    '/subscriptions/$id': [
      ...inTabs(`subscriptions/${day.subscription}`, /\/billing$/, {
        overview: 'Overview',
        filters: 'Filters',
        delivery: 'Delivery',
        retries: 'Retries',
        credentials: 'Credentials',
        signing: 'Signing keys',
      }),
      ...one(`subscriptions/${day.paused}`, /\/reports$/),
    ],
    '/dead-letters': one('dead-letters', 'Dead letters'),
    '/replays': one('replays', 'Replays'),
    '/replays/new': [
      ...one('replays/new', 'New replay'),
      ...one('replays/new?what=unfinished&count=yes', 'Cancel deliveries'),
    ],
    '/replays/$id': [...one(`replays/${day.replay}`, 'Send again'), ...one(`replays/${day.scheduled}`, 'Send again')],
    '/channels': one('channels', 'Channels'),
    '/channels/$id': one(`channels/${day.channel}`, 'zaken'),
    '/applications': one('applications', 'Applications'),
    '/alerts': inTabs('alerts', 'Alerts', { open: 'Open', past: 'History', rules: 'Rules' }),
    // Of one channel: all that other tests change is in the log as well, and would be gone through row by row.
    '/audit': one(`audit?subject=channel/${day.channel}`, 'Audit log'),
    '/settings': inTabs('settings', 'Settings', {
      'retry-policy': 'Retry policy',
      retention: 'Retention',
      configuration: 'Configuration',
      installation: 'Installation',
    }),
    '/publish': one('publish?channel=zaken', 'Publish a notification'),
  };
}

/** As a link of the console leads there, without another load; until it shows what it has to show. */
export async function goTo(page: Page, { at, heading, tab }: Place): Promise<void> {
  // The router hears of it.
  await page.evaluate((address) => history.pushState({}, '', address), `/console/${at}`);
  await expect(page.getByRole('heading', { level: 1, name: heading, exact: true })).toBeVisible();
  if (tab) await expect(page.getByRole('tab', { name: tab })).toHaveAttribute('aria-selected', 'true');
  await expect(page.getByRole('main').locator('.mantine-Skeleton-root, .mantine-Loader-root')).toHaveCount(0);
}
