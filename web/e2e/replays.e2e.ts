import { Receiver } from '../../test/support/receiver.js';
import { asTimePasses, atOnce, expect, lookAt, test } from './harness.js';

test('a new subscription is sent everything that it would have got, from a form that says what it means', async ({
  open,
  heraut,
}) => {
  const channel = await heraut.createChannel(['kind']);
  for (const kind of ['permit', 'permit', 'other']) await heraut.publish(channel, { kenmerken: { kind } });
  const receiver = await Receiver.start();
  const kanalen = [{ naam: channel, filters: { kind: 'permit' } }];
  const subscriptionId = await heraut.subscribe({ channel, url: receiver.url, kanalen });
  const page = await open('replays/new');
  await page.getByText('Everything for a subscription').click();
  await expect(page.getByRole('button', { name: 'Count what this means' })).toBeDisabled();
  await page.getByRole('combobox', { name: 'For which subscription' }).fill(receiver.url.slice(7));
  await page.getByRole('option', { name: receiver.url.slice(7) }).click();
  await page.getByRole('button', { name: 'Count what this means' }).click();
  await expect(page).toHaveURL(new RegExp(`what=everything&subscription=${subscriptionId}&count=yes`));
  const result = page.getByRole('region', { name: 'Result of the count' });
  await expect(result.getByText('2 deliveries of 2 notifications are meant.')).toBeVisible();
  await lookAt(page, 'new-replay');
  await result.getByRole('button', { name: 'Send 2 again' }).click();
  await expect(page.getByText('2 of 2')).toBeVisible();
  await expect.poll(() => receiver.notifications.length).toBe(2);
  await receiver.stop();
});

test('an id that is pasted and counted at once is counted, and not everything', async ({ open, heraut, page }) => {
  const { id } = await heraut.publish(await heraut.createChannel());
  await page.clock.install();
  await open('replays/new?what=unfinished');
  const asked: unknown[] = [];
  await page.route('**/admin/v1/replays/dry-run*', (route) => {
    asked.push(route.request().postDataJSON());
    return route.continue();
  });
  const field = page.getByRole('textbox', { name: 'Notification' });
  await page.clock.pauseAt(new Date(Date.now() + 60_000));
  await field.fill(` ${id}`);
  await field.press('Enter');
  await page.clock.resume();
  await expect(page).toHaveURL(new RegExp(`notification=${id}&count=yes$`));
  await expect(page.getByRole('region', { name: 'Result of the count' })).toContainText('Nothing is meant.');
  await page.clock.fastForward(1_000);
  await expect(page).toHaveURL(new RegExp(`notification=${id}&count=yes$`));
  expect(JSON.stringify(asked)).not.toContain('"all":true');
  // A letter that is typed afterwards and taken back changes nothing.
  await field.press('End');
  await field.press('x');
  await field.press('Backspace');
  await page.clock.fastForward(1_000);
  await expect(page).toHaveURL(new RegExp(`notification=${id}&count=yes$`));
});

test('a selection of everything is confirmed by its count, typed', async ({ open, heraut }) => {
  const page = await open('replays/new?state=cancelled');
  await page.getByRole('checkbox', { name: /cancelled/ }).uncheck();
  await page.getByRole('checkbox', { name: /unknown/ }).check();
  const channel = await heraut.createChannel();
  const receiver = await Receiver.start();
  const subscriptionId = await heraut.subscribe({ channel, url: receiver.url });
  await heraut.api.call('POST', `/admin/v1/subscriptions/${subscriptionId}/pause`);
  const { id } = await heraut.publish(channel);
  await heraut.becomes('held', id, subscriptionId);
  await heraut.command('cancel', id, subscriptionId);
  await page.getByRole('checkbox', { name: /unknown/ }).uncheck();
  await page.getByRole('checkbox', { name: /cancelled/ }).check();
  await page.getByRole('button', { name: 'Count what this means' }).click();
  const result = page.getByRole('region', { name: 'Result of the count' });
  const send = result.getByRole('button', { name: /^Send \d+ again$/ });
  await expect(send).toBeDisabled();
  const count = /\d+/.exec((await send.textContent())!)![0];
  await result.getByRole('textbox', { name: `Type ${count} to confirm` }).fill(count);
  await expect(send).toBeEnabled();
  await receiver.stop();
});

test('how to send it is kept while what is meant is changed, and counted again', async ({ open, heraut }) => {
  const channel = await heraut.createChannel();
  const page = await open('replays/new');
  const count = page.getByRole('button', { name: 'Count what this means' });
  await count.click();
  const result = page.getByRole('region', { name: 'Result of the count' });
  await result.getByRole('textbox', { name: 'Deliveries a second' }).fill('1');
  await result.getByRole('button', { name: 'When, and a note' }).click();
  await result.getByLabel('Stop at').fill('2031-05-06T06:00');
  await result.getByRole('textbox', { name: 'Note' }).fill('frail');
  await page.getByRole('combobox', { name: 'Channels' }).fill(channel);
  await page.getByRole('option', { name: channel }).click();
  await page.keyboard.press('Escape');
  await expect(result).toHaveCount(0);
  await count.click();
  await expect(result.getByText('Nothing is meant.')).toBeVisible();
  await expect(result.getByRole('textbox', { name: 'Deliveries a second' })).toHaveValue('1');
  await expect(result.getByLabel('Stop at')).toHaveValue(/^2031-05-06T06:00/);
  await expect(result.getByRole('textbox', { name: 'Note' })).toHaveValue('frail');
});

test('a count that was cut short before it came to any can be confirmed as it is', async ({ open, page }) => {
  await open('replays/new?state=failed');
  const cut = { count: 0, isComplete: false, searchedTo: '2026-01-01T00:00:00.000Z', notifications: 0 };
  const none = { bySubscription: [], sample: [], needsConfirm: true, asOf: '2026-01-02T00:00:00.000Z' };
  await page.route('**/admin/v1/replays/dry-run*', (route) => route.fulfill({ json: { ...cut, ...none } }));
  const asked: unknown[] = [];
  await page.route('**/admin/v1/replays', (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    asked.push(route.request().postDataJSON());
    return route.abort();
  });
  await page.getByRole('button', { name: 'Count what this means' }).click();
  const result = page.getByRole('region', { name: 'Result of the count' });
  await expect(result.getByText(/^At least 0 deliveries are meant\. Not all was counted/)).toBeVisible();
  const send = result.getByRole('button', { name: 'Send 0 again' });
  await expect(send).toBeDisabled();
  await result.getByRole('textbox', { name: 'Type 0 to confirm' }).fill('0');
  await send.click();
  await expect.poll(() => asked).toEqual([expect.objectContaining({ confirm: 0 })]);
});

test('what was published by mistake is cancelled from the list that shows it, and what comes later is not', async ({
  open,
  heraut,
}) => {
  const channel = await heraut.createChannel();
  const receiver = await Receiver.start();
  const subscriptionId = await heraut.subscribe({ channel, url: receiver.url });
  await heraut.api.call('POST', `/admin/v1/subscriptions/${subscriptionId}/pause`);
  const publish = async () => {
    const { id } = await heraut.publish(channel);
    await heraut.becomes('held', id, subscriptionId);
    return id;
  };
  const mistakes = [await publish(), await publish()];
  const page = await open(`notifications?channel=${channel}&publisher=test-superuser`);
  const list = page.getByRole('table', { name: 'Notifications found' });
  await expect(list.getByRole('row')).toHaveCount(3);
  const toCancel = page.getByRole('link', { name: 'Cancel what is unfinished' });
  // A selection cannot be narrowed by a publisher: more would be cancelled than is shown.
  await expect(toCancel).toHaveCount(0);
  await page.getByRole('button', { name: /^Remove filter .*test-superuser/ }).click();
  await toCancel.click();
  await expect(page.getByRole('heading', { level: 1, name: 'Cancel deliveries' })).toBeVisible();
  const result = page.getByRole('region', { name: 'Result of the count' });
  await expect(result.getByText('2 deliveries of 2 notifications are meant.')).toBeVisible();
  await lookAt(page, 'cancel-unfinished');
  const later = await publish();
  await result.getByRole('textbox', { name: 'Note' }).fill('published by mistake');
  await result.getByRole('button', { name: 'Cancel 2 deliveries' }).click();
  await expect(page.getByText('2 of 2')).toBeVisible();
  await expect(page.getByText('published by mistake')).toBeVisible();
  for (const id of mistakes) await heraut.becomes('cancelled', id, subscriptionId);
  expect((await heraut.delivery(later, subscriptionId)).state).toBe('held');

  // All that is unfinished, whatever it is of, is confirmed by its count.
  await page.goto(page.url().replace(/replays\/.*/, 'replays/new?what=unfinished&count=yes'));
  await expect(result.getByRole('textbox', { name: /^Type \d+ to confirm$/ })).toBeVisible();
  await expect(result.getByRole('button', { name: /^Cancel \d+ deliver(y|ies)$/ })).toBeDisabled();
  await receiver.stop();
});

test('dead letters of a replay that cannot all be counted are counted every minute', async ({ open, page, badDay }) => {
  let counts = 0;
  await page.route('**/admin/v1/dead-letters?*', async (route) => {
    const response = await route.fetch();
    const json = { ...(await response.json()), count: 70_000, isComplete: false };
    await route.fulfill({ response, json });
    counts += 1;
  });
  await page.clock.install();
  await open(`replays/${badDay.scheduled}`);
  await expect(page.getByText('at least 70,000')).toBeVisible();
  await page.clock.pauseAt(Date.now() + 1_000);
  for (let seconds = 0; seconds < 50; seconds += 10) {
    const looked = page.waitForResponse(/\/admin\/v1\/replays\//);
    await page.clock.runFor(10_000);
    await looked;
  }
  expect(counts).toBe(1);
  await asTimePasses(page, () => expect.poll(() => counts, atOnce).toBe(2));
});

test('a replay is scheduled, paused, resumed and cancelled, and found again in the list', async ({ open, heraut }) => {
  const channel = await heraut.createChannel();
  const receiver = await Receiver.start();
  const subscriptionId = await heraut.subscribe({ channel, url: receiver.url });
  const { id } = await heraut.publish(channel);
  await heraut.becomes('delivered', id, subscriptionId);
  const page = await open(`replays/new?subscription=${subscriptionId}&state=delivered&count=yes`);
  await page.getByRole('button', { name: 'When, and a note' }).click();
  const send = page.getByRole('button', { name: 'Send 1 again' });
  // A year of two digits is one of the first century to the browser; it must not be sent at once for that.
  for (const field of ['Not before', 'Stop at']) {
    await page.getByLabel(field).fill('0099-01-01T12:00');
    await expect(send).toBeDisabled();
    await send.focus();
    await page.getByLabel('Note').focus();
    await expect(page.getByText('This is no time.')).toBeVisible();
    await page.getByLabel(field).fill('');
    await expect(send).toBeEnabled();
  }
  await page.getByLabel('Not before').fill('2099-01-01T12:00');
  await send.click();
  await expect(page.getByText('scheduled')).toBeVisible();
  const url = page.url();
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(page.getByText('paused', { exact: true })).toBeVisible();

  await page.getByRole('link', { name: 'Replays' }).click();
  const list = page.getByRole('table', { name: 'Replays, the newest first' });
  await page.getByRole('combobox', { name: 'State' }).click();
  await page.getByRole('option', { name: 'paused' }).click();
  await expect(page).toHaveURL(/state=paused/);
  await expect(list.getByRole('row')).toHaveCount(2);
  await list.getByRole('link', { name: 'Send again' }).click();
  await expect(page).toHaveURL(url);
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(page.getByText('scheduled', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: 'Cancel' }).click();
  const dialog = page.getByRole('dialog', { name: 'Cancel “Send again”? 1 delivery is left' });
  await dialog.getByRole('button', { name: 'Cancel, leave 1' }).click();
  await expect(page.getByText('cancelled', { exact: true })).toBeVisible();
  expect((await heraut.delivery(id, subscriptionId)).state).toBe('delivered');

  await page.goto(url.replace(/.{8}$/, '00000000'));
  await expect(page.getByRole('heading', { level: 1, name: 'There is no such replay' })).toBeVisible();
  await receiver.stop();
});
