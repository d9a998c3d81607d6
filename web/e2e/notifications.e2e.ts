import type { Page, Response } from '@playwright/test';
import { answer } from '../../test/support/receiver.js';
import { TcpProxy } from '../../test/support/tcp-proxy.js';
import { asTimePasses, atOnce, expect, lookAt, test } from './harness.js';

const list = (page: Page) => page.getByRole('table', { name: 'Notifications found' });

test('notifications are sought by chips that stand in the address, and new ones are announced', async ({
  open,
  page,
  heraut,
  receiver,
}) => {
  await page.clock.install();
  const channel = await heraut.createChannel(['kind']);
  const url = `${receiver.url}/of-${channel}`;
  const subscriptionId = await heraut.subscribe({ channel, url });
  await heraut.publish(channel, { resource: 'permit', kenmerken: { kind: 'a' } });
  await heraut.publish(channel, { resource: 'letter', kenmerken: { kind: 'b' } });
  // There may be very many, and the line be slow: only those that are sought or named are read.
  const subscriptionsRead: string[] = [];
  page.on('request', (request) => {
    const asked = new URL(request.url());
    if (asked.pathname.endsWith('/admin/v1/subscriptions')) subscriptionsRead.push(asked.search);
  });
  await open('notifications');
  const filter = page.getByRole('textbox', { name: 'Filter', exact: true });
  await filter.fill('Chan');
  await page.getByRole('option', { name: 'Channel', exact: true }).click();
  await page.getByRole('textbox', { name: /Value for “Channel”/ }).fill(channel.slice(0, 20));
  await page.getByRole('option', { name: channel }).click();
  await expect(page.getByRole('listbox')).toBeHidden();
  await expect(page).toHaveURL(new RegExp(`channel=${channel}`));
  await expect(list(page).getByRole('link', { name: 'create permit' })).toBeVisible();
  await expect(list(page).getByText('delivered')).toHaveCount(2);
  await lookAt(page, 'notifications');

  await filter.fill('kind:b');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/characteristic=kind%3Ab/);
  await expect(list(page).getByRole('link', { name: 'create letter' })).toBeVisible();
  await expect(list(page).getByRole('link')).toHaveCount(1);

  await heraut.publish(channel, { resource: 'newest', kenmerken: { kind: 'b' } });
  const announced = page.getByRole('button', { name: /1 new notification/ });
  await asTimePasses(page, () => expect(announced).toBeVisible(atOnce));
  await announced.click();
  await expect(list(page).getByRole('link').first()).toHaveText('create newest');

  await page.getByRole('button', { name: /Remove filter Characteristic/ }).click();
  await expect(list(page).getByRole('link')).toHaveCount(3);
  await page.goBack();
  await expect(list(page).getByRole('link')).toHaveCount(2);

  expect(subscriptionsRead).toEqual([]);
  await filter.fill('Subscription');
  await page.getByRole('option', { name: 'Subscription', exact: true }).click();
  await page.getByRole('textbox', { name: /Value for “Subscription”/ }).fill(channel);
  await page.getByRole('option', { name: url }).click();
  await expect(page).toHaveURL(new RegExp(`subscription=${subscriptionId}`));
  await page.reload();
  await expect(page.getByRole('button', { name: `Change filter Subscription: ${url}` })).toBeVisible();
  await expect(list(page).getByRole('link')).toHaveCount(2);
  expect(subscriptionsRead.at(-1)).toBe(`?ids=${subscriptionId}`);
  expect(subscriptionsRead.filter((query) => !/[?&](limit|ids)=/.test(query))).toEqual([]);

  await filter.fill('state:failed');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Nothing fits these filters' })).toBeVisible();
  await filter.fill('lastStatus:x');
  await page.goto(`${page.url()}&lastStatus=x`);
  await expect(page.getByRole('alert')).toContainText('lastStatus');
});

test('where nothing fits, what comes is announced, and looked for every few seconds', async ({
  open,
  page,
  heraut,
}) => {
  await page.clock.install();
  const begunAt = Date.now();
  const channel = await heraut.createChannel();
  let looks = 0;
  page.on('request', (request) => {
    if (/\/admin\/v1\/notifications\?.*acceptedFrom=/.test(request.url())) looks += 1;
  });
  await open(`notifications?channel=${channel}`);
  await expect(page.getByRole('heading', { name: 'Nothing fits these filters' })).toBeVisible();
  await heraut.publish(channel);
  const announced = page.getByRole('button', { name: /1 new notification/ });
  await asTimePasses(page, () => expect(announced).toBeVisible(atOnce));
  for (const _ of [1, 2]) {
    await page.clock.fastForward(10_000);
    await expect(announced).toBeVisible();
  }
  // At first, when the page is shown, and every five seconds by its clock, which goes on beside what it is moved by.
  const passedMs = (await page.evaluate(() => Date.now())) - begunAt;
  expect(looks).toBeLessThanOrEqual(passedMs / 5_000 + 2);
});

test('what comes is announced where nothing fits and the clock of the browser is ahead', async ({
  open,
  page,
  heraut,
}) => {
  await page.clock.install({ time: Date.now() + 600_000 });
  const channel = await heraut.createChannel();
  await open(`notifications?channel=${channel}`);
  await expect(page.getByRole('heading', { name: 'Nothing fits these filters' })).toBeVisible();
  await heraut.publish(channel);
  const announced = page.getByRole('button', { name: /1 new notification/ });
  await asTimePasses(page, () => expect(announced).toBeVisible(atOnce));
});

test('a notification that is under way is shown as it is now, without being read again', async ({
  open,
  page,
  heraut,
  receiver,
}) => {
  await page.clock.install();
  const channel = await heraut.createChannel();
  const subscriptionId = await heraut.subscribe({ channel, url: receiver.url });
  // As long as the browser may need until it shows the row.
  await heraut.api.call('PATCH', `/admin/v1/subscriptions/${subscriptionId}`, { body: { timeoutSeconds: 40 } });
  let deliver = () => {};
  receiver.next((_request, response) => (deliver = () => response.writeHead(204).end()));
  await heraut.publish(channel);
  await open(`notifications?channel=${channel}`);
  await expect(list(page).getByText('queued')).toBeVisible();
  deliver();
  await asTimePasses(page, () => expect(list(page).getByText('delivered')).toBeVisible(atOnce));
});

test('a row that is under way is shown as it is now however many came since, and is asked about until it has ended', async ({
  open,
  page,
  heraut,
  receiver,
}) => {
  await page.clock.install();
  const channel = await heraut.createChannel();
  const subscriptionId = await heraut.subscribe({ channel, url: receiver.url });
  await heraut.api.call('PATCH', `/admin/v1/subscriptions/${subscriptionId}`, { body: { timeoutSeconds: 40 } });
  const underWay = new Promise<() => void>((resolve) => {
    receiver.next((_request, response) => resolve(() => response.writeHead(204).end()));
  });
  await heraut.publish(channel, { resource: 'permit' });
  const deliver = await underWay;
  let looksAtListed = 0;
  page.on('request', (request) => {
    if (/\/admin\/v1\/notifications\?.*acceptedTo=/.test(request.url())) looksAtListed += 1;
  });
  await open(`notifications?channel=${channel}`);
  const row = list(page).getByRole('row', { name: 'create permit' });
  await expect(row).toContainText('queued');
  await heraut.publishMany(channel, 60);
  const many = page.getByRole('button', { name: /more than 50 new notifications/ });
  await asTimePasses(page, () => expect(many).toBeVisible(atOnce));
  deliver();
  await asTimePasses(page, () => expect(row.getByText('delivered')).toBeVisible(atOnce));

  const isLook = (response: Response) => /\/admin\/v1\/notifications\?.*acceptedFrom=/.test(response.url());
  await expect(async () => {
    const before = looksAtListed;
    for (let looks = 0; looks < 2; looks += 1) {
      const look = page.waitForResponse(isLook);
      await page.clock.fastForward(10_000);
      await look;
    }
    expect(looksAtListed).toBe(before);
  }).toPass();
});

test('of a notification with more deliveries than are looked at it says how many its numbers are about', async ({
  open,
  heraut,
  receiver,
}) => {
  const channel = await heraut.createChannel();
  const subscribe = () => heraut.subscribe({ channel, url: receiver.url });
  const subscriptions = [await subscribe()];
  await heraut.publish(channel, { resource: 'letter' });
  subscriptions.push(...(await Promise.all(Array.from({ length: 50 }, subscribe))));
  const { id } = await heraut.publish(channel, { resource: 'permit' });
  for (const subscription of subscriptions) await heraut.becomes('delivered', id, subscription);
  const page = await open(`notifications?channel=${channel}`);
  await expect(list(page).getByRole('row', { name: 'create permit' })).toContainText('50 deliveredof the first 50');
  await expect(list(page).getByText('of the first 50')).toHaveCount(1);

  await list(page).getByRole('link', { name: 'create permit' }).click();
  const header = page.getByRole('status').filter({ hasText: 'delivered' });
  await expect(header).toHaveText('50 deliveredof the 50 shown');
  await expect(page.getByRole('tab', { name: 'Deliveries 51' })).toBeVisible();
  await page.getByRole('button', { name: 'Show more' }).click();
  await expect(header).toHaveText('51 delivered');
  // The tests after this one have these pages as well.
  await Promise.all(subscriptions.map((subscription) => heraut.unsubscribe(subscription)));
});

test('a list by state is as of when it was read; what was done to one of it shows on the way back, the rest when it is read again', async ({
  open,
  heraut,
  receiver,
}) => {
  const channel = await heraut.createChannel();
  const subscriptionId = await heraut.subscribe({ channel, url: receiver.url });
  await heraut.api.call('PUT', `/admin/v1/subscriptions/${subscriptionId}/retry-policy`, { body: { maxRetries: 0 } });
  // A call that is held back here must not be over by itself before the browser has read the list.
  await heraut.api.call('PATCH', `/admin/v1/subscriptions/${subscriptionId}`, { body: { timeoutSeconds: 40 } });
  receiver.next(answer(500));
  const { id } = await heraut.publish(channel, { resource: 'permit' });
  await heraut.becomes('failed', id, subscriptionId);
  const page = await open(`notifications?channel=${channel}&state=failed`);
  const row = list(page).getByRole('link', { name: 'create permit' });
  await row.click();
  await page.getByRole('button', { name: 'Send again' }).click();
  await heraut.becomes('delivered', id, subscriptionId);
  const underWay = new Promise<() => void>((resolve) => {
    receiver.next((_request, response) => resolve(() => response.writeHead(500).end()));
  });
  const later = await heraut.publish(channel, { resource: 'letter' });
  const fail = await underWay;
  await page.goBack();
  await expect(page.getByRole('heading', { name: 'Nothing fits these filters' })).toBeVisible();

  // This one was accepted before: that it fails is not announced in the list.
  fail();
  await heraut.becomes('failed', later.id, subscriptionId);
  await expect(page.getByText(/^as of \d/)).toBeVisible();
  await page.getByRole('button', { name: 'Read again' }).click();
  await expect(list(page).getByRole('link')).toHaveText(['create letter']);
});

test('a list of 100,000 rows has few in the document, and a bounded search goes on when asked', async ({
  open,
  page,
}) => {
  const rows = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => ({
      id: `01890a5d-ac96-774b-bcce-${String(from + index).padStart(12, '0')}`,
      channel: 'cases',
      publisher: 'cases',
      key: null,
      acceptedAt: '2026-01-01T00:00:00.000Z',
      notBefore: null,
      mainObject: `https://cases.example.org/${from + index}`,
      resource: String(from + index),
      resourceUrl: '',
      action: 'create',
      characteristics: {},
      deliveries: { delivered: 1 },
    }));
  await page.route('**/admin/v1/notifications?*', (route) => {
    const query = new URL(route.request().url()).searchParams;
    if (query.has('acceptedFrom'))
      return route.fulfill({ json: { notifications: [], nextCursor: null, searchedTo: null } });
    const cursor = query.get('cursor');
    if (cursor === 'last')
      return route.fulfill({ json: { notifications: rows(99_999, 1), nextCursor: null, searchedTo: null } });
    const from = Number(cursor ?? 0);
    const isLast = from === 75_000;
    const count = isLast ? 24_999 : 25_000;
    return route.fulfill({
      json: {
        notifications: rows(from, count),
        nextCursor: isLast ? 'last' : String(from + count),
        searchedTo: isLast ? '2025-12-01T00:00:00.000Z' : null,
      },
    });
  });
  await open('notifications');
  await list(page).getByRole('row').nth(1).focus();
  for (const end of [24_999, 49_999, 74_999, 99_998]) {
    await expect(
      page.getByText(
        new RegExp(`^${(end + 1).toLocaleString('en')} shown|${(end + 1).toLocaleString('en')} found so far`),
      ),
    ).toBeVisible();
    await page.keyboard.press('End');
    await expect(list(page).getByRole('link', { name: `create ${end}`, exact: true })).toBeVisible();
    expect(await list(page).getByRole('row').count()).toBeLessThan(80);
    await expect(page.locator(`[data-index="${end}"]`)).toBeFocused();
  }
  await expect(page.getByText(/Searched back to .*Dec 1, 2025/)).toBeVisible();
  await page.getByRole('button', { name: 'Search further back' }).click();
  await expect(page.getByText('100,000 in all')).toBeVisible();
});

test('the tail shows what happens, waits while it is paused, and leads to the notification', async ({
  open,
  heraut,
  receiver,
}) => {
  const channel = await heraut.createChannel();
  await heraut.subscribe({ channel, url: receiver.url });
  const page = await open(`tail?channel=${channel}`);
  const events = page.getByRole('table', { name: 'Events' });
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await expect(page.getByRole('heading', { name: 'Nothing that fits has happened' })).toBeVisible();
  // The process that delivers learns with its next heartbeat that somebody listens.
  await expect(async () => {
    const { id } = await heraut.publish(channel);
    const ofIt = events.getByRole('row').filter({ has: page.locator(`a[href*="${id}"]`) });
    await expect(ofIt.filter({ hasText: 'HTTP 204' })).toBeVisible({ timeout: 4000 });
    await expect(ofIt.filter({ hasText: 'accepted' })).toBeVisible();
  }).toPass();
  await page.getByRole('button', { name: 'Clear', exact: true }).click();
  receiver.next(answer(500));
  const first = await heraut.publish(channel);
  await expect(events.getByText('HTTP 500')).toBeVisible();
  await expect(events.getByText('accepted', { exact: true })).toBeVisible();
  await lookAt(page, 'tail');

  await page.getByRole('button', { name: 'Pause' }).click();
  await heraut.publish(channel);
  await page.getByRole('button', { name: 'Go on (2 wait)' }).click();
  await expect(events.getByText('delivered')).toBeVisible();

  await events.getByRole('link', { name: 'accepted' }).first().click();
  await expect(page).toHaveURL(new RegExp(`notifications/${first.id}`));
  await heraut.publish(channel);
  await page.goBack();
  await expect(events.getByText('accepted', { exact: true })).toHaveCount(3);

  await page.getByRole('combobox', { name: 'Event', exact: true }).click();
  await page.getByRole('option', { name: 'attempt', exact: true }).click();
  await expect(page).toHaveURL(/event=delivery\.attempted/);
  await expect(events.getByText('accepted', { exact: true })).toHaveCount(0);
  await expect(events.getByText('HTTP 500')).toBeVisible();
  await page.getByRole('button', { name: 'Clear', exact: true }).click();
  await expect(page.getByRole('heading', { name: 'Nothing that fits has happened' })).toBeVisible();
});

test('a row of the tail that has the focus stays, whatever comes behind it', async ({ open, heraut }) => {
  const channel = await heraut.createChannel();
  const page = await open(`tail?channel=${channel}&event=notification.accepted`);
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await heraut.publishMany(channel, 3);
  const events = page.getByRole('table', { name: 'Events' });
  const rows = events.getByRole('row');
  await expect(rows).toHaveCount(4);
  await rows.nth(1).focus();
  const before = await rows.nth(1).textContent();
  await heraut.publishMany(channel, 100);
  await expect(events).toHaveAttribute('aria-rowcount', '104');
  await expect(rows.nth(1)).toBeFocused();
  await expect(rows.nth(1)).toHaveText(before!);
  await page.getByRole('button', { name: 'To the newest' }).click();
  await expect(events.locator('[aria-rowindex="104"]')).toBeInViewport();
  await heraut.publishMany(channel, 50);
  await expect(events.locator('[aria-rowindex="154"]')).toBeInViewport();
});

test('the way to the newest row leads there also while the tail is paused, and goes on by keyboard', async ({
  open,
  heraut,
}) => {
  const channel = await heraut.createChannel();
  const page = await open(`tail?channel=${channel}&event=notification.accepted`);
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await heraut.publishMany(channel, 60);
  const events = page.getByRole('table', { name: 'Events' });
  const newest = events.locator('[aria-rowindex="61"]');
  await expect(newest).toBeInViewport();
  await page.getByRole('button', { name: 'Pause' }).click();
  await events.locator('[data-index]').last().focus();
  await page.keyboard.press('Home');
  await expect(newest).not.toBeInViewport();
  const toNewest = page.getByRole('button', { name: 'To the newest' });
  await toNewest.press('Enter');
  await expect(newest).toBeInViewport();
  await expect(toNewest).toHaveCount(0);
  await expect(events.locator(':focus')).toHaveCount(1);
});

test('the tail says that its connection is lost, makes it again by itself, and misses nothing: it is cut, the api restarts', async ({
  open,
  heraut,
}) => {
  const channel = await heraut.createChannel();
  const way = await TcpProxy.start(heraut.api.url);
  const page = await open(`tail?channel=${channel}&event=notification.accepted`, new URL(way.url).origin);
  const events = page.getByRole('table', { name: 'Events' }).getByRole('link', { name: 'accepted' });
  const isLost = page.getByText(/Connection lost at/);
  const told: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/admin/v1/events')) told.push(request.headers()['last-event-id'] ?? '');
  });
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await heraut.publish(channel);
  await expect(events).toHaveCount(1);
  await way.cut();
  await expect(isLost).toBeVisible();
  await heraut.publish(channel);
  await way.restore();
  await expect(isLost).toBeHidden();
  await expect(events).toHaveCount(2);

  await page.getByRole('button', { name: 'Pause' }).click();
  await heraut.publish(channel);
  await expect(page.getByRole('button', { name: 'Go on (1 wait)' })).toBeVisible();
  await heraut.api.kill9();
  await expect(isLost).toBeVisible();
  await heraut.api.start('live');
  // Before the page is back: it is told what came meanwhile.
  await heraut.publish(channel);
  await expect(isLost).toBeHidden();
  await page.getByRole('button', { name: 'Go on (2 wait)' }).click();
  await expect(events).toHaveCount(4);
  await expect(page.getByText('events missed')).toHaveCount(0);
  expect(told.length).toBeGreaterThan(1);
  expect(told.every((id) => /^\d+$/.test(id))).toBe(true);
  await way.cut();
});
