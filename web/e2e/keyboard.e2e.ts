import type { Locator, Page } from '@playwright/test';
import { randomUUID } from 'node:crypto';
import { expect, lookAt, test } from './harness.js';

const palette = (page: Page) => page.getByRole('dialog', { name: 'Go to' });
const parked = {
  address: 'https://receiver.example.org',
  failureCount: 12,
  nextProbeAt: '2026-11-20T10:01:00.000Z',
  probeCount: 0,
  subscriptionIds: [],
  openedAt: '2026-11-20T10:00:00.000Z',
  reason: 'HTTP 503',
  subscriptionCount: 1,
};
const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });
/** The key that follows `g` counts for a moment: it is pressed without waiting for the page to have had the first. */
const go = (page: Page, key: string) => Promise.all(['g', key].map((each) => page.keyboard.press(each)));

test('the palette leads to pages, channels and subscriptions by their names, and to what has an id', async ({
  open,
  heraut,
  receiver,
}) => {
  const channel = await heraut.createChannel(['kind']);
  const subscription = await heraut.subscribe({ channel, url: `${receiver.url}?palette=${channel}` });
  const { id } = await heraut.publish(channel);
  const page = await open('overview');
  await page.getByRole('button', { name: /Go to/ }).click();
  await expect(palette(page).getByRole('combobox')).toBeFocused();
  await lookAt(page, 'palette');
  await page.keyboard.press('Escape');
  await expect(palette(page)).toBeHidden();

  await page.keyboard.press('Control+k');
  await page.keyboard.type('dead let');
  await expect(palette(page).getByRole('option', { selected: true })).toHaveText(/^Dead letters/);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/dead-letters$/);
  await expect(palette(page)).toBeHidden();

  await page.keyboard.press('/');
  await page.keyboard.type(channel);
  await expect(palette(page).getByRole('group', { name: 'Subscriptions' }).getByRole('option')).toHaveCount(1);
  await lookAt(page, 'palette-found');
  await page.keyboard.press('ArrowDown');
  await expect(palette(page).getByRole('option', { selected: true })).toHaveText(new RegExp(`palette=${channel}`));
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/subscriptions/${subscription}$`));

  // Enter is pressed before the answer is there.
  await page.keyboard.press('Control+k');
  await expect(palette(page).getByRole('combobox')).toBeFocused();
  await page.keyboard.insertText(` urn:uuid:${id.toUpperCase()} `);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/notifications/${id}$`));

  await page.keyboard.press('Control+k');
  await expect(palette(page).getByRole('combobox')).toBeFocused();
  await page.keyboard.insertText(subscription);
  await expect(palette(page).getByRole('option')).toHaveText(new RegExp(`palette=${channel}`));
  for (const pasted of [
    `${heraut.api.url}/console/subscriptions/${subscription}?tab=delivery`,
    `urn:uuid:${subscription.toUpperCase()}`,
    `{"event":"subscription.paused","subscriptionId":"${subscription}"}`,
  ]) {
    await palette(page).getByRole('combobox').fill(pasted);
    await expect(palette(page).getByRole('option')).toHaveText(new RegExp(`palette=${channel}`));
  }
  const { body } = await heraut.api.call('GET', '/admin/v1/channels');
  const { channels } = body as { channels: { id: string; name: string }[] };
  const channelId = channels.find(({ name }) => name === channel)!.id;
  await palette(page).getByRole('combobox').fill(`${heraut.api.url}/console/channels/${channelId}`);
  await expect(palette(page).getByRole('option')).toHaveText(new RegExp(channel));
  await palette(page).getByRole('combobox').fill(randomUUID());
  await expect(palette(page).getByRole('listbox')).toContainText(
    'No notification, replay, subscription or channel has this id',
  );
  await page.keyboard.press('Enter');
  await expect(palette(page)).toBeVisible();
  await palette(page).getByRole('combobox').fill('no page of this name');
  await expect(palette(page).getByRole('listbox')).toContainText('Nothing has these words in its name.');
});

test('keys lead to pages, never while somebody types or a dialog is open, and can be switched off', async ({
  open,
}) => {
  const page = await open('overview');
  await go(page, 's');
  await expect(page).toHaveURL(/\/subscriptions/);
  await page.keyboard.press('g');
  await page.keyboard.press('x');
  await page.keyboard.press('n');
  await expect(page).toHaveURL(/\/subscriptions/);

  await page.keyboard.press('?');
  const sheet = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await expect(sheet).toBeVisible();
  await lookAt(page, 'shortcuts');
  await page.keyboard.press('g');
  await page.keyboard.press('o');
  await page.keyboard.press('Control+k');
  await expect(page).toHaveURL(/\/subscriptions/);
  await expect(palette(page)).toBeHidden();
  await page.keyboard.press('Escape');
  await expect(sheet).toBeHidden();

  await page.keyboard.press('/');
  await page.keyboard.type('gn?/ j');
  await expect(palette(page).getByRole('combobox')).toHaveValue('gn?/ j');
  await page.keyboard.press('Escape');
  await expect(page).toHaveURL(/\/subscriptions/);

  await page.keyboard.press('?');
  await sheet.getByRole('switch', { name: 'Keys of one letter' }).press('Space');
  await page.keyboard.press('Escape');
  await expect(sheet).toBeHidden();
  await page.keyboard.press('?');
  await page.keyboard.press('g');
  await page.keyboard.press('o');
  await page.keyboard.press('Control+k');
  await expect(palette(page)).toBeVisible();
  await expect(sheet).toBeHidden();
  await expect(page).toHaveURL(/\/subscriptions/);
});

test('a time is sought by the keyboard alone, as it is typed, and who removes a filter goes on at the next', async ({
  open,
}) => {
  const page = await open('notifications?channel=cases&state=failed');
  const filter = page.getByRole('textbox', { name: 'Filter', exact: true });
  const choose = async (name: string) => {
    await filter.fill(name);
    // The last one: before it is what the text may be a value of.
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    const field = page.getByLabel(`Value for “${name}”`);
    await expect(field).toBeFocused();
    return field;
  };
  const from = await choose('Accepted from');
  await from.fill('2026-10-24T12:30');
  await page.keyboard.press('ArrowDown');
  const changed = await from.inputValue();
  expect(changed).not.toBe('2026-10-24T12:30');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`acceptedFrom=${changed.slice(0, 10)}`));
  await expect(filter).toBeFocused();
  await expect(page.getByRole('listbox')).toBeHidden();

  const before = await choose('Accepted before');
  await page.keyboard.type('11');
  await page.keyboard.press('Backspace');
  await expect(before).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.getByText('This is no time.')).toBeVisible();
  await lookAt(page, 'notifications-wrong-time');
  await before.press('Escape');
  await expect(filter).toBeFocused();

  const removes = (name: string) => page.getByRole('button', { name: new RegExp(`^Remove filter ${name}`) });
  await removes('State').focus();
  for (const next of [removes('Channel'), removes('Accepted from'), filter]) {
    await page.keyboard.press('Enter');
    await expect(next).toBeFocused();
  }
  await expect(page).toHaveURL(/\/notifications$/);
});

test('after a removal the keyboard goes on at the next, or where another is added; after a quick search in the filter', async ({
  open,
  heraut,
}) => {
  const channel = await heraut.createChannel(['kind', 'region']);
  const page = await open(`subscriptions?new=1&on=${channel}`);
  const form = page.getByRole('dialog', { name: 'New subscription' });
  const button = (name: string) => form.getByRole('button', { name, exact: true });
  const press = async (name: string, then: string) => {
    await button(name).focus();
    await page.keyboard.press('Enter');
    await expect(button(then)).toBeFocused();
  };
  await button('Add a filter').click();
  await button('Add a filter').click();
  await press('Remove the filter on kind', 'Remove the filter on region');
  await press('Remove the filter on region', 'Add a filter');
  await button('Add another entry').click();
  await press('Remove entry 2', 'Remove entry 1');
  await press('Remove entry 1', 'Add another entry');
  await button('Client certificate, authority and headers').click();
  await button('Add a header').click();
  await button('Add a header').click();
  await press('Remove header 1', 'Remove header 1');
  await press('Remove header 1', 'Add a header');

  await open(`publish?channel=${channel}`);
  const add = page.getByRole('button', { name: 'Add a characteristic' });
  await add.click();
  await add.click();
  const removes = page.getByRole('button', { name: /^Remove characteristic/ });
  await removes.last().focus();
  await page.keyboard.press('Enter');
  await expect(removes).toHaveCount(1);
  await expect(removes).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(add).toBeFocused();

  for (const quick of [
    { role: 'link', name: 'Dead letters' } as const,
    { role: 'button', name: 'Of the last hour' } as const,
  ]) {
    await open('notifications');
    await page.getByRole('list', { name: 'Often sought' }).getByRole(quick.role, quick).focus();
    await page.keyboard.press('Enter');
    await expect(page.getByRole('textbox', { name: 'Filter', exact: true })).toBeFocused();
    await expect(page.getByRole('listbox')).toBeHidden();
  }
});

test('a notification is published by the keyboard alone', async ({ open, heraut, receiver }) => {
  const channel = await heraut.createChannel(['kind']);
  await heraut.subscribe({ channel, url: receiver.url });
  const page = await open('overview');
  await go(page, 'p');
  await expect(heading(page, 'Publish a notification')).toBeVisible();
  const into = async (role: 'combobox' | 'textbox', name: string, text: string) => {
    const field = page.getByRole(role, { name, exact: true });
    for (let tabs = 0; !(await field.evaluate((element) => element === document.activeElement)); tabs++) {
      expect(tabs, `${name} can be reached`).toBeLessThan(40);
      await page.keyboard.press('Tab');
    }
    await page.keyboard.type(text);
  };
  await into('combobox', 'Channel kanaal', channel);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await into('textbox', 'Resource resource', 'case');
  await into('textbox', 'Main object hoofdObject', 'https://cases.example.org/1');
  await into('textbox', 'URL of the resource resourceUrl', 'https://cases.example.org/1');
  await into('textbox', 'kind', 'permit');
  await page.keyboard.press('Enter');
  await expect(page.getByText('Delivered to 1 of 1')).toBeVisible();
});

test('the focus stays where it was used, whatever goes or is switched off under it', async ({
  open,
  page,
  heraut,
  receiver,
}) => {
  const id = await heraut.subscribe({ channel: await heraut.createChannel(['kind']), url: receiver.url });
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const press = async (control: Locator, then: Locator) => {
    await control.focus();
    await page.keyboard.press('Enter');
    await expect(then).toBeFocused();
  };
  const callsAtOnce = (count: number) => page.getByLabel('Calls at once').fill(String(count));

  await open(`subscriptions/${id}?tab=delivery`);
  await callsAtOnce(7);
  await press(button('Save'), button('Save'));
  await expect(page.getByText('Not saved yet')).toHaveCount(0);
  await expect(button('Save')).toBeDisabled();
  await expect(button('Save')).toBeFocused();
  await callsAtOnce(8);
  await press(button('Discard changes'), button('Save'));

  // A notice goes with its buttons.
  await press(button('Pause'), button('Resume'));
  await press(button('Undo'), button('Pause'));
  const crosses = page.getByRole('alert').getByRole('button', { name: 'Close this notice' });
  await expect(page.getByRole('alert').filter({ hasText: /resumed/i })).toBeVisible();
  for (let left = await crosses.count(); left > 0; left--) {
    await crosses.last().focus();
    await page.keyboard.press('Enter');
    await expect(crosses).toHaveCount(left - 1);
    await expect(page.locator(':focus')).toHaveCount(1);
  }

  // The question that a secret comes after is gone before it.
  await page.getByRole('tab', { name: 'Signing keys' }).click();
  const dialog = page.getByRole('dialog');
  const ask = async (opener: Locator, action: string) => {
    await opener.focus();
    await page.keyboard.press('Enter');
    await dialog.getByRole('button', { name: action, exact: true }).press('Enter');
  };
  const copied = () => press(dialog.getByRole('button', { name: 'I have copied it' }), button('Make a key'));
  const keys = page.getByRole('table', { name: 'Signing keys' }).getByRole('row');
  await ask(button('Make a key'), 'Make');
  await copied();
  await expect(keys).toHaveCount(2);
  await expect(button('Make a key')).toBeFocused();
  await ask(button('Rotate'), 'Rotate');
  await copied();
  await expect(keys).toHaveCount(3);
  await ask(button('End').first(), 'End');
  await expect(keys).toHaveCount(2);
  await expect(button('End')).toBeFocused();
});

test('after a dialog the focus is where it was opened, also after one that comes into being open', async ({
  open,
  page,
  heraut,
  receiver,
}) => {
  const dialog = page.getByRole('dialog');
  const opensAndLeaves = async (opener: Locator, press = 'Enter') => {
    await opener.press(press);
    await expect(dialog).toBeVisible();
    await page.keyboard.press('Escape');
    await expect(dialog).toHaveCount(0);
    await expect(opener).toBeFocused();
  };
  const channel = await heraut.createChannel();
  const subscriptionId = await heraut.subscribe({ channel, url: receiver.url });
  const { id } = await heraut.publish(channel);
  await heraut.becomes('delivered', id, subscriptionId);
  await page.route('**/admin/v1/endpoints', (route) => route.fulfill({ json: { endpoints: [parked], paced: [] } }));

  await open('endpoints');
  await opensAndLeaves(page.getByRole('button', { name: /^Reset / }));
  await opensAndLeaves(page.getByRole('button', { name: /Go to/ }));
  await opensAndLeaves(page.getByRole('button', { name: /^Reset / }), '?');
  await opensAndLeaves(page.getByRole('button', { name: /^Reset / }), 'Control+k');
  await open(`notifications/${id}`);
  await opensAndLeaves(page.getByRole('button', { name: 'Send again' }));
});

test('after the secret of an application the focus is where it was asked for, and in the drawer that is open', async ({
  open,
  page,
}) => {
  const clientId = `focus-${randomUUID().slice(0, 8)}`;
  await open(`applications?q=${clientId}`);
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const dialog = page.getByRole('dialog');
  await button('Add application').press('Enter');
  await dialog.getByLabel('Client id').fill(clientId);
  await dialog.getByLabel('Label').fill('for a test');
  await page.keyboard.press('Enter');
  await button('I have copied it').press('Enter');
  await expect(button('Add application')).toBeFocused();
  await page.getByRole('link', { name: clientId, exact: true }).press('Enter');
  await button('New secret').press('Enter');
  const question = page.getByRole('dialog', { name: /^Make a new secret/ });
  await question.getByRole('button', { name: 'New secret', exact: true }).press('Enter');
  await button('I have copied it').press('Enter');
  await expect(button('New secret')).toBeFocused();
});
