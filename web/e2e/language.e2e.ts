import { nonsense, Receiver } from '../../test/support/receiver.js';
import { expect, test } from './harness.js';

test.beforeEach(({ page }) => page.addInitScript(() => localStorage.setItem('heraut-language', 'nl')));

test('on a Dutch page the error of a call is marked as English, also within a sentence, and not the sentence', async ({
  open,
  page,
  heraut,
}) => {
  const receiver = await Receiver.start();
  const channel = await heraut.createChannel();
  const subscription = await heraut.subscribe({ channel, url: `${receiver.url}/nonsense` });
  receiver.always(nonsense);
  await heraut.api.call('PUT', `/admin/v1/subscriptions/${subscription}/retry-policy`, { body: { maxRetries: 0 } });
  const { id } = await heraut.publish(channel);
  const lastError = String((await heraut.becomes('failed', id, subscription)).lastError);
  const said = page.getByRole('main').getByText(lastError);
  const isMarked = async () => {
    await expect(said.first()).toBeVisible();
    for (const each of await said.all()) await expect(each).toHaveAttribute('lang', 'en');
  };
  for (const path of [
    `notifications/${id}`,
    `notifications/${id}?tab=story`,
    `notifications/${id}?tab=explain`,
    `subscriptions/${subscription}`,
    `subscriptions?text=${channel}`,
    `dead-letters?subscription=${subscription}`,
    `publish?published=${id}`,
  ]) {
    await open(path);
    await test.step(path, isMarked);
  }
  await open(`notifications/${id}?tab=explain`);
  const sentence = page.getByText(/^Regel 1 past: .* Ze is mislukt op .* na één poging/);
  await expect(sentence).toContainText(`(${lastError}). Ze wordt bewaard als onbestelbaar.`);
  await expect(sentence).not.toHaveAttribute('lang');
  await open(`tail?subscription=${subscription}`);
  // Of the first calls after it is opened it may not be told.
  await expect(async () => {
    await heraut.publish(channel);
    await expect(said.first()).toBeVisible({ timeout: 2_000 });
  }).toPass({ timeout: 60_000 });
  await isMarked();
  await receiver.stop();
});

test('on a Dutch page the answer of a receiver is not taken for English', async ({ open, page, heraut, badDay }) => {
  const { lastError } = await heraut.delivery(badDay.notification, badDay.subscription);
  expect(lastError).toBe('HTTP 500: after a deploy');
  await open(`notifications/${badDay.notification}`);
  const said = page.getByText(lastError!);
  await expect(said.first()).toBeVisible();
  for (const each of await said.all()) await expect(each).not.toHaveAttribute('lang');
});

test('on a Dutch page, why a part of Heraut does not work is marked as English', async ({ open, page, heraut }) => {
  const { body } = await heraut.api.call('GET', '/admin/v1/overview');
  const overview = body as { health: { parts: object[] } };
  const parts = [{ name: 'redis', status: 'down', error: 'of this test' }];
  await page.route('**/admin/v1/overview', (route) =>
    route.fulfill({ json: { ...overview, health: { ...overview.health, parts } } }),
  );
  await open('overview?welcome=no');
  const link = page.getByRole('link', { name: 'Redis: of this test' });
  await expect(link.locator('[lang=en]')).toHaveText('of this test');
  await expect(link).not.toHaveAttribute('lang');
});

test('on a Dutch page, reasons of the API beside what is published are marked as English, and those of the page not', async ({
  open,
  page,
  heraut,
}) => {
  const channel = await heraut.createChannel();
  const url = 'https://zaken.example.org/zaken/api/v1/zaken/1';
  await page.route('**/admin/v1/notifications', (route) =>
    route.fulfill({
      status: 400,
      contentType: 'application/problem+json',
      json: {
        type: 'about:blank',
        status: 400,
        code: 'invalid',
        title: 'Invalid',
        detail: '',
        invalidParams: [{ name: 'source', code: 'of-this-test', reason: 'Nobody has it.' }],
      },
    }),
  );
  await open(`publish?channel=${channel}`);
  await page.getByRole('textbox', { name: 'Hoofdobject' }).fill(url);
  await page.getByRole('textbox', { name: 'URL van de resource' }).fill(url);
  await page.getByRole('textbox', { name: 'Resource resource', exact: true }).fill('status');
  await page.getByRole('button', { name: 'Publiceren', exact: true }).click();
  await expect(page.getByText('Nobody has it.')).toHaveAttribute('lang', 'en');
  await page.getByRole('textbox', { name: 'Idempotency-sleutel' }).fill('ключ');
  await page.getByRole('button', { name: 'Publiceren', exact: true }).click();
  const own = page.getByText(/ASCII/);
  await expect(own).toBeVisible();
  await expect(own).not.toHaveAttribute('lang');
});

test('on a Dutch page, why somebody could not be signed out is marked as English', async ({ open, page }) => {
  await open('channels');
  await page.route('**/console/session', (route) =>
    route.request().method() === 'DELETE'
      ? route.fulfill({
          status: 503,
          contentType: 'application/problem+json',
          json: { status: 503, code: 'service_unavailable', title: 'Not available', detail: 'Of this test' },
        })
      : route.continue(),
  );
  await page.getByRole('button', { name: /^test-superuser, / }).click();
  await page.getByRole('menuitem', { name: 'Afmelden', exact: true }).click();
  await expect(page.getByText('Of this test')).toHaveAttribute('lang', 'en');
  await expect(page.getByText('U bent niet afgemeld')).not.toHaveAttribute('lang');
});

test('how much a list has is told anew at once in the language that is chosen', async ({ open, page, heraut }) => {
  await open(`channels?q=${await heraut.createChannel()}`);
  const status = page.getByRole('main').getByRole('status');
  await expect(status.filter({ hasText: /^1 gevonden$/ })).toBeAttached();
  await page.getByRole('button', { name: /^test-superuser, / }).click();
  await page.getByRole('menuitem', { name: 'English' }).click();
  await expect(status.filter({ hasText: /^1 found$/ })).toBeAttached();
});

test('on a narrow screen, also in Dutch, no state or number of a list is cut off, nor is the form of a channel with a long name', async ({
  open,
  page,
  heraut,
  badDay: _badDay,
}) => {
  await page.route('**/admin/v1/notifications?*', async (route) => {
    const response = await route.fetch();
    const { notifications, ...rest } = (await response.json()) as { notifications: object[] };
    const deliveries = [
      { held: 12, waiting: 3, delivered: 35 },
      { sending: 10 },
      { unknown: 10, cancelled: 20 },
      { cancelled: 10 },
    ];
    const changed = notifications.map((each, nr) => ({ ...each, deliveries: deliveries[nr % deliveries.length] }));
    await route.fulfill({ response, json: { notifications: changed, ...rest } });
  });
  const filter = 'n'.repeat(100);
  const { body } = await heraut.api.call('POST', '/admin/v1/channels', {
    body: { name: filter.slice(60), filters: [filter] },
  });
  const channel = (body as { name: string }).name;
  const cutOff = () =>
    page.evaluate(() =>
      [...document.querySelectorAll<HTMLElement>('[role=cell] .mantine-Badge-root')]
        .filter((badge) => badge.checkVisibility())
        .filter((badge) => {
          const label = badge.querySelector('.mantine-Badge-label')!;
          const cell = badge.closest('[role=cell]')!;
          return (
            label.scrollWidth > label.clientWidth ||
            badge.getBoundingClientRect().right > cell.getBoundingClientRect().right ||
            badge.getBoundingClientRect().bottom > cell.parentElement!.getBoundingClientRect().bottom
          );
        })
        .map((badge) => badge.textContent),
    );
  const tooWide = () =>
    page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  for (const width of [375, 320]) {
    await page.setViewportSize({ width, height: 640 });
    for (const list of ['notifications', 'subscriptions', 'replays', `publish?channel=${channel}`]) {
      await open(list);
      if (!list.startsWith('publish'))
        await expect(page.locator('[role=cell] .mantine-Badge-root').first()).toBeVisible();
      else await expect(page.getByRole('textbox', { name: filter })).toBeVisible();
      await expect.poll(cutOff, `${list}, ${width} px`).toEqual([]);
      expect(await tooWide(), `${list}, ${width} px`).toBeLessThanOrEqual(0);
      if (list === 'notifications')
        await expect(page.getByText('+2 statussen').filter({ visible: true }).first()).toBeVisible();
    }
  }
});
