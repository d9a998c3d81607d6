import { randomUUID } from 'node:crypto';
import { Receiver } from '../../test/support/receiver.js';
import { reasonsIn, severityOf, type Overview } from '../src/pages/overview/verdict.js';
import { asTimePasses, atOnce, expect, lookAt, test } from './harness.js';

const now = '2026-11-22T12:00:00.000Z';
const counts = { accepted: 0, duplicates: 0, delivered: 0, failedAttempts: 0, gaveUp: 0 };
const exactly = (count: number) => ({ count, isEstimate: false });
const none = exactly(0);
const fine: Overview = {
  computedAt: now,
  health: { status: 'ready', parts: [{ name: 'postgres', status: 'up', error: null }] },
  processes: [],
  activity: {
    countedUntil: now,
    lastMinute: { seconds: 60, ...counts },
    lastMinutes: { seconds: 300, ...counts, successRate: null, deliveryP50Ms: null, deliveryP95Ms: null },
    lastHour: [],
  },
  backlog: {
    measuredAt: now,
    queued: none,
    sending: none,
    waiting: none,
    held: { 'endpoint-busy': none, 'endpoint-parked': none, paused: none, rate: none, order: none },
    due: none,
    oldestDueAt: null,
    oldestQueuedAt: null,
  },
  deadLetters: { measuredAt: now, failed: none, expired: none, unknown: none },
  endpoints: { openCount: 0, longest: [] },
  subscriptions: {
    count: 3,
    haltedCount: 0,
    disabled: { count: 0, latest: [] },
    paused: { count: 0, latest: [] },
    troubled: { measuredAt: now, most: [] },
  },
  replays: [],
  alerts: { openCount: 0, latest: [] },
};

test('the verdict says what is wrong, of Heraut and of receivers, the worst first', () => {
  const verdict = (changes: Partial<Overview>) => {
    const reasons = reasonsIn({ ...fine, ...changes });
    return [severityOf(reasons), ...reasons.map(({ key, of }) => `${of} ${key}`)];
  };
  const dead = { measuredAt: now, failed: exactly(5), expired: none, unknown: none };
  const since = '2026-11-22T11:00:00.000Z';
  const one = { count: 1, latest: [{ id: 'a', receiver: 'https://a', since }] };
  const busy = { ...fine.activity!.lastMinutes, delivered: 90, failedAttempts: 10, successRate: 0.9 };
  expect(verdict({})).toEqual(['fine']);
  expect(verdict({ deadLetters: dead })).toEqual(['note', 'receivers deadLetters']);
  const gaveUp = { ...fine.activity!, lastHour: [{ at: since, ...counts, gaveUp: 5 }] };
  expect(verdict({ activity: gaveUp, deadLetters: dead })).toEqual(['bad', 'receivers gaveUp']);
  expect(verdict({ activity: gaveUp }), 'all of them were sent again').toEqual(['fine']);
  expect(verdict({ subscriptions: { ...fine.subscriptions, disabled: one, paused: one } })).toEqual([
    'warn',
    'receivers disabled',
    'receivers paused',
  ]);
  expect(verdict({ activity: { ...fine.activity!, lastMinutes: busy } })).toEqual(['warn', 'receivers failing']);
  expect(
    verdict({ activity: { ...fine.activity!, lastMinutes: { ...busy, delivered: 9, failedAttempts: 1 } } }),
  ).toEqual(['fine']);
  const fetched = { ...busy, delivered: 500, failedAttempts: 1, successRate: 0 };
  expect(verdict({ activity: { ...fine.activity!, lastMinutes: fetched } }), 'one call, and much was fetched').toEqual([
    'fine',
  ]);
  const few = { ...busy, delivered: 18, failedAttempts: 2, successRate: 18 / 20 };
  expect(verdict({ activity: { ...fine.activity!, lastMinutes: few } }), 'as few calls as prove something').toEqual([
    'warn',
    'receivers failing',
  ]);
  expect(verdict({ backlog: { ...fine.backlog!, due: exactly(9), oldestDueAt: since } })).toEqual([
    'bad',
    'heraut late',
  ]);
  expect(verdict({ backlog: { ...fine.backlog!, measuredAt: since } })).toEqual(['warn', 'heraut notMeasured']);
  expect(verdict({ replays: null, alerts: { openCount: 2, latest: [] } })).toEqual([
    'warn',
    'heraut notRead',
    'heraut alerts',
  ]);
  expect(verdict({ backlog: null })).toEqual(['warn', 'heraut neverMeasured']);
  expect(verdict({ deadLetters: null })).toEqual(['warn', 'heraut neverMeasured']);
  const down = { status: 'unavailable', parts: [{ name: 'postgres', status: 'down', error: 'no answer' }] } as const;
  expect(
    verdict({
      health: { ...down, parts: [...down.parts] },
      processes: null,
      activity: null,
      backlog: null,
      deadLetters: dead,
    }),
  ).toEqual(['bad', 'heraut part', 'receivers deadLetters']);
  const open = { address: 'https://a', reason: 'down', openedAt: since, nextProbeAt: now };
  expect(verdict({ endpoints: { openCount: 1, longest: [open] }, deadLetters: dead })).toEqual([
    'bad',
    'receivers endpoints',
    'receivers deadLetters',
  ]);
});

test('what could not be read is not said to be well', async ({ open, page }) => {
  const unread = {
    ...fine,
    backlog: null,
    deadLetters: null,
    alerts: null,
    replays: null,
    subscriptions: { ...fine.subscriptions, troubled: null },
  };
  await page.route('**/admin/v1/overview', (route) => route.fulfill({ json: unread }));
  await open('overview?welcome=no');
  await expect(page.getByRole('status').filter({ hasText: '2 things need attention' })).toBeVisible();
  for (const name of ['Open alerts', 'Replays under way', 'Subscriptions with most that is not delivered'])
    await expect(page.getByRole('region', { name })).toContainText('Not known');
});

test('beside an api of the version before, the stopped subscriptions are still counted', async ({ open, page }) => {
  const { haltedCount: _, ...known } = fine.subscriptions;
  const since = '2026-11-22T11:00:00.000Z';
  const halted = (count: number) => ({ count, latest: [{ id: 'a', receiver: 'https://a', since }] });
  const before = { ...fine, subscriptions: { ...known, paused: halted(2), disabled: halted(1) } };
  await page.route('**/admin/v1/overview', (route) => route.fulfill({ json: before }));
  await open('overview?welcome=no');
  await expect(page.getByRole('link', { name: 'Stopped subscriptions: 3 of 3 subscriptions' })).toBeVisible();
});

test('failures alone are not taken for no calls', async ({ open, page }) => {
  const lastMinutes = { ...fine.activity!.lastMinutes, failedAttempts: 300, successRate: 0 };
  const failing: Overview = { ...fine, activity: { ...fine.activity!, lastMinutes } };
  await page.route('**/admin/v1/overview', (route) => route.fulfill({ json: failing }));
  await open('overview?welcome=no');
  await expect(page.getByText('Nothing sent at once was delivered in five minutes')).toBeVisible();
  await expect(page.getByText('No calls in five minutes')).toHaveCount(0);
});

test('the overview shows what goes on and what is wrong, and leads to where it is mended', async ({
  open,
  heraut,
  receiver,
}) => {
  const broken = await Receiver.start();
  const channel = await heraut.createChannel();
  await heraut.subscribe({ channel, url: receiver.url });
  await heraut.subscribe({ channel, url: broken.url });
  await broken.stop(); // nothing listens there any more
  await heraut.publishMany(channel, 8);
  const page = await open('overview');
  const reason = page.getByRole('link', { name: /endpoints? (is|are) parked/ });
  await expect(reason).toBeVisible();
  // Each process adds what it has counted every ten seconds. Other tests publish here as well.
  await expect(page.getByRole('link', { name: /^Accepted: (?!0 )[\d.,]+ per second/ })).toBeVisible();
  await expect(page.getByRole('link', { name: /^Delivered: (?!0 )[\d.,]+ per second/ })).toBeVisible();
  await expect(page.getByText('api', { exact: true }).first()).toBeVisible();
  await lookAt(page, 'overview');
  await reason.click();
  await expect(page).toHaveURL(/\/console\/endpoints$/);
  const { origin } = new URL(broken.url);
  const row = page.getByRole('row').filter({ hasText: origin });
  await expect(row).toContainText('ECONNREFUSED');
  await expect(row.getByRole('link', { name: `test-superuser · ${broken.url.slice(7)}` })).toBeVisible();
  await lookAt(page, 'endpoints');
  const affected = row.getByRole('link', { name: `1 subscription leads to ${origin}` });
  const { width, height } = page.viewportSize()!;
  await page.setViewportSize({ width: 375, height });
  await expect(affected).toBeVisible();
  // The exact time has its place in the row, on a phone too.
  const since = row
    .getByRole('cell')
    .filter({ hasText: /:\d\d [AP]M UTC \(/ })
    .first();
  const [ofCell, ofRow] = [await since.boundingBox(), await row.boundingBox()];
  expect(ofCell!.y).toBeGreaterThanOrEqual(ofRow!.y);
  expect(ofCell!.y + ofCell!.height).toBeLessThanOrEqual(ofRow!.y + ofRow!.height);
  await page.setViewportSize({ width, height });
  await affected.click();
  const list = page.getByRole('table', { name: 'Subscriptions' });
  await expect(list.getByRole('row')).toHaveCount(2);
  await expect(list.getByRole('link', { name: broken.url })).toBeVisible();
  await expect(page.getByText(`Only those that lead to ${origin}`)).toBeVisible();
  await lookAt(page, 'subscriptions-of-endpoint');
  await page.getByRole('button', { name: 'Show all', exact: true }).click();
  await expect(list.getByRole('row').nth(2)).toBeVisible();
  await page.getByRole('combobox', { name: 'State' }).click();
  await page.getByRole('option', { name: 'parked' }).click();
  await expect(list.getByRole('link', { name: broken.url })).toBeVisible();
  await expect(list.getByRole('link', { name: receiver.url })).toHaveCount(0);
  await page.goBack();
  await page.getByRole('searchbox', { name: 'Find an endpoint' }).fill('no such endpoint');
  await expect(
    page.getByRole('heading', { name: 'No endpoint has “no such endpoint” in its address or reason' }),
  ).toBeVisible();
  await expect(page).toHaveURL(/q=no\+such\+endpoint/);
  await page.getByRole('button', { name: 'Show all' }).click();
  await row.getByRole('button', { name: `Reset ${origin}` }).click();
  const dialog = page.getByRole('dialog', { name: `Send to ${origin} again now? One subscription leads there.` });
  await dialog.getByRole('button', { name: 'Reset the endpoint' }).click();
  await expect(page.getByText(`${origin} gets its deliveries again`)).toBeVisible();
  await broken.start(); // and is well again
  await expect(row).toHaveCount(0);
  await broken.stop();
});

test('volume is shown over a day and over a week, of everything, and of one subscription, channel or application', async ({
  open,
  page,
  heraut,
  receiver,
}) => {
  const channel = await heraut.createChannel();
  const subscription = await heraut.subscribe({ channel, url: receiver.url });
  for (let nr = 0; nr < 3; nr++) await heraut.becomes('delivered', (await heraut.publish(channel)).id, subscription);
  const clientId = `archive-${randomUUID()}`;
  const made = await heraut.api.call('POST', '/admin/v1/applications', { body: { clientId, label: 'Archive' } });
  const { id: application } = made.body as { id: string };
  await page.clock.install();
  await open(`subscriptions/${subscription}`);
  const volume = page.getByRole('region', { name: 'Volume' });
  // Each process adds what it has counted every ten seconds. Other tests publish here as well.
  const delivered = volume.getByRole('link', { name: 'Delivered: 3' });
  await asTimePasses(page, () => expect(delivered).toBeVisible(atOnce));
  await expect(volume.getByRole('img', { name: /^Delivered: 3, at most \d in 60 min$/ })).toBeVisible();
  await volume.getByText('7d').click();
  await expect(page).toHaveURL(/span=7d/);
  await expect(delivered).toBeVisible();
  await lookAt(page, 'subscription-volume');
  await delivered.click();
  await expect(page).toHaveURL(new RegExp(`/notifications\\?subscription=${subscription}&state=delivered$`));

  await open('overview?welcome=no&span=7d');
  await expect(volume.getByRole('link', { name: /^Accepted: [1-9]/ })).toBeVisible();
  await expect(volume.getByRole('radio')).toHaveCount(2);
  const { body } = await heraut.api.call('GET', `/admin/v1/channels?text=${channel}`);
  const [{ id }] = (body as { channels: [{ id: string }] }).channels;
  await open(`channels/${id}`);
  await expect(volume.getByRole('link', { name: 'Accepted: 3' })).toBeVisible();
  await open(`applications?application=${application}`);
  await expect(volume.getByRole('link', { name: 'Accepted: 0' })).toBeVisible();
  await lookAt(page, 'application-volume');
  await page.route('**/admin/v1/activity?*', (route) => route.fulfill({ status: 500 }));
  await volume.getByText('7d').click();
  await expect(volume.getByRole('alert')).toBeVisible();
});

test('the overview says that Heraut does not answer, and recovers by itself', async ({
  open,
  page,
  heraut,
  context,
}) => {
  await page.clock.install();
  await open('overview?welcome=no');
  const verdict = page.getByRole('status').filter({ hasText: /is well|wrong|attention/ });
  await expect(verdict).toBeVisible();
  const notice = page.getByText('Heraut does not answer.');
  const isSaid = () => expect(notice).toBeVisible(atOnce);
  const isOver = () => expect(notice).toHaveCount(0, atOnce);
  await context.setOffline(true);
  await asTimePasses(page, isSaid);
  await expect(verdict).toBeVisible(); // the last known state stays
  await context.setOffline(false);
  await asTimePasses(page, isOver);
  await heraut.api.stop();
  await asTimePasses(page, isSaid);
  await heraut.api.start();
  await asTimePasses(page, isOver);
  await expect(verdict).toBeVisible();
});

test('the overview asks nothing while its tab is hidden', async ({ open, page }) => {
  await page.clock.install();
  await open('overview?welcome=no');
  await expect(page.getByRole('status').filter({ hasText: /is well|wrong|attention/ })).toBeVisible();
  let asked = 0;
  page.on('request', (request) => (asked += Number(request.url().endsWith('/admin/v1/overview'))));
  const show = (visibility: 'hidden' | 'visible') =>
    page.evaluate((value) => {
      Object.defineProperty(document, 'visibilityState', { value, configurable: true });
      document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
    }, visibility);
  await show('hidden');
  const before = asked;
  await page.clock.runFor(60_000);
  expect(asked).toBe(before);
  await show('visible');
  await expect.poll(() => asked).toBeGreaterThan(before);
});

test('the settings show what the installation runs on, and no secret', async ({ open }) => {
  const page = await open('settings?tab=installation');
  for (const server of ['PostgreSQL', 'RabbitMQ', 'Redis'])
    await expect(page.getByRole('row').filter({ hasText: server }).filter({ hasText: 'works' })).toBeVisible();
  await expect(page.getByRole('row').filter({ hasText: 'worker, dispatcher' })).toContainText('alive');
  await expect(page.getByRole('row').filter({ hasText: 'SUPERUSER_SECRET' })).toContainText('set, not shown');
});
