import type { Route } from '@playwright/test';
import { createHash, randomUUID } from 'node:crypto';
import { signToken } from '../../test/support/tokens.js';
import type { AlertPage } from '../src/pages/alerts/alerts.ts';
import { asTimePasses, atOnce, auditEntry, expect, lookAt, retype, test } from './harness.js';

const newName = (kind: string) => `${kind}-${randomUUID().slice(0, 8)}`;

test('a channel is added, and changed by two operators at once', async ({ open, heraut, receiver }) => {
  const name = newName('zaken');
  const page = await open('channels');
  await page.getByRole('button', { name: 'Add channel' }).click();
  const form = page.getByRole('dialog', { name: 'Add channel' });
  await form.getByLabel('Name').fill(name);
  await form.getByLabel('Filters').fill('zaaktype');
  await form.getByLabel('Filters').press('Enter');
  await lookAt(page, 'channel-new');
  // Closed by mistake, or to look something up: what was typed is still there.
  for (const close of [() => form.getByRole('button', { name: 'Cancel' }).click(), () => page.goBack()]) {
    await close();
    await expect(form).toHaveCount(0);
    await page.getByRole('button', { name: 'Add channel' }).click();
    await expect(form.getByLabel('Name')).toHaveValue(name);
    await expect(form.getByText('zaaktype')).toBeVisible();
  }
  await form.getByLabel('Documentation').fill('not a link');
  // The API says what is wrong with it, and what was typed stays.
  await form.locator('form').evaluate((element: HTMLFormElement) => (element.noValidate = true));
  await form.getByRole('button', { name: 'Add channel' }).click();
  await expect(form.getByText('Not an absolute http or https URL.').first()).toBeVisible();
  await expect(form.getByLabel('Name')).toHaveValue(name);
  await form.getByLabel('Documentation').fill('https://docs.example.org/zaken');
  await form.getByRole('button', { name: 'Add channel' }).click();
  await expect(page.getByRole('heading', { level: 1, name })).toBeVisible();

  await heraut.subscribe({ channel: name, url: receiver.url, kanalen: [{ naam: name, filters: { zaaktype: 'x' } }] });
  await heraut.publish(name, { kenmerken: { zaaktype: 'x' } });
  await page.reload();
  await expect(page.getByText('zaaktype = x')).toBeVisible();
  const id = page.url().split('/').at(-1)!;

  await page.getByLabel('Days that texts are kept').fill('30');
  const path = `/admin/v1/channels/${id}`;
  expect((await heraut.api.call('PATCH', path, { body: { maxAgeSeconds: 3600 } })).status).toBe(200);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  const notice = page.getByRole('alert').filter({ hasText: 'Somebody else changed this meanwhile' });
  await expect(notice).toBeVisible();
  await expect(page.getByLabel('Days that texts are kept')).toHaveValue('30');
  await lookAt(page, 'channel-changed-meanwhile');
  await notice.getByRole('button', { name: 'Load their version' }).click();
  await expect(page.getByLabel('Greatest age', { exact: true })).toHaveValue('1');
  await expect(page.getByLabel('Days that texts are kept')).toHaveValue('');
  await page.getByLabel('Days that texts are kept').fill('20');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByRole('button', { name: 'Discard changes' })).toHaveCount(0);
  expect((await heraut.api.call('GET', path)).body).toMatchObject({ maxAgeSeconds: 3600, bodyRetentionDays: 20 });

  await page.getByRole('link', { name: 'All channels' }).click();
  await page.getByLabel('Search by name').fill(name.slice(-8));
  await expect(page).toHaveURL(new RegExp(`q=${name.slice(-8)}`));
  await expect(page.getByRole('row').filter({ hasText: name })).toContainText('at most 60 min old · texts 20 days');
  await page.getByLabel('Search by name').fill('nothing is called so');
  await page.getByRole('button', { name: 'Clear the search' }).click();
  await expect(page.getByLabel('Search by name')).toHaveValue('');
  await expect(page.getByRole('row').nth(1)).toBeVisible();
});

test('a channel is removed once no subscription names it, by its name typed', async ({ open, heraut, receiver }) => {
  const name = await heraut.createChannel();
  const subscriptionId = await heraut.subscribe({ channel: name, url: receiver.url });
  // Of a long list only the rows in view are drawn, and how long it is depends on the tests before.
  const page = await open(`channels?q=${name}`);
  await page.getByRole('link', { name, exact: true }).click();
  const remove = page.getByRole('button', { name: 'Remove', exact: true });
  await remove.click();
  const asked = page.getByRole('dialog', { name: `Remove the channel ${name}?` });
  const confirmed = asked.getByRole('button', { name: 'Remove', exact: true });
  await asked.getByLabel(`Type ${name} to confirm`).fill(name);
  await expect(asked.getByRole('alert')).toContainText('1 subscription names this channel, so it cannot be removed.');
  await expect(confirmed).toBeDisabled();
  await lookAt(page, 'channel-in-use');
  await asked.getByRole('link', { name: 'All of them' }).click();
  await expect(page).toHaveURL(new RegExp(`/subscriptions\\?channel=${name}$`));
  await heraut.api.call('DELETE', `/admin/v1/subscriptions/${subscriptionId}`);
  await page.goBack();
  await page.reload();
  await remove.click();
  await asked.getByLabel(`Type ${name} to confirm`).fill(name);
  await expect(confirmed).toBeEnabled();

  // Somebody subscribes meanwhile, whether or not the page has counted before: the API refuses it, and the dialog says
  // why in its own words.
  let other: string | undefined;
  await page.route('**/admin/v1/channels/*', async (route) => {
    if (route.request().method() === 'DELETE') other ??= await heraut.subscribe({ channel: name, url: receiver.url });
    await route.continue();
  });
  await confirmed.click();
  await expect(asked.getByRole('alert')).toHaveText(/^1 subscription names this channel, so it cannot be removed\./);
  await expect(confirmed).toBeDisabled();
  await heraut.api.call('DELETE', `/admin/v1/subscriptions/${other}`);
  // Opened again, it knows that nothing is in the way any more.
  await asked.getByRole('button', { name: 'Cancel' }).click();
  await expect(asked).toHaveCount(0);
  await remove.click();
  await expect(asked).toContainText('without its other rules; the days that texts are kept stay');
  await asked.getByLabel(`Type ${name} to confirm`).fill(name);
  await confirmed.click();
  await expect(page).toHaveURL(/\/console\/channels$/);
  const { body } = await heraut.api.call('GET', `/admin/v1/channels?text=${name}`);
  expect(body).toMatchObject({ channels: [] });
});

test('the volume of a channel does not seem to fall because its last hour is not over', async ({
  open,
  page,
  heraut,
}) => {
  const { body } = await heraut.api.call('POST', '/admin/v1/channels', { body: { name: newName('zaken') } });
  const counts = { duplicates: 0, delivered: 0, failedAttempts: 0, gaveUp: 0 };
  const hours = [4, 4, 0].map((accepted, nr) => ({ at: `2026-11-22T0${nr}:00:00.000Z`, accepted, ...counts }));
  const activity = { bucketSeconds: 3600, countedUntil: '2026-11-22T02:00:10.000Z', buckets: hours };
  await page.route('**/admin/v1/activity?*', (route) => route.fulfill({ json: activity }));
  await open(`channels/${(body as { id: string }).id}`);
  const drawn = page
    .getByRole('img', { name: /^Accepted: 8, at most 4 in/ })
    .locator('path')
    .last();
  await expect(drawn).toHaveAttribute('d', /^M0\.0 (\S+)L480\.0 \1$/);
});

test('an application is added, changed, given a new secret, and removed by its name', async ({ open, heraut }) => {
  const clientId = newName('case-system');
  const page = await open(`applications?q=${clientId}`);
  await page.getByRole('button', { name: 'Add application' }).click();
  const form = page.getByRole('dialog', { name: 'Add application' });
  await form.getByLabel('Client id').fill(clientId);
  await form.getByRole('textbox', { name: 'Label', exact: true }).fill('Case system');
  await form.getByRole('checkbox', { name: 'publish' }).check();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Add application' }).click();
  await expect(form.getByRole('textbox', { name: 'Label', exact: true })).toHaveValue('Case system');
  await form.getByRole('button', { name: 'Add application' }).click();
  const shown = page.getByRole('dialog', { name: `The secret of ${clientId}` });
  await expect(shown.locator('pre')).toHaveText(/^[\w-]{43}$/);
  const first = await shown.locator('pre').textContent();
  await shown.getByRole('button', { name: 'I have copied it' }).click();
  await expect(shown).toHaveCount(0);
  await page.getByRole('button', { name: 'Add application' }).click();
  await expect(form.getByLabel('Client id')).toHaveValue('');
  await page.keyboard.press('Escape');
  await expect(form).toHaveCount(0);

  await page.getByRole('link', { name: clientId }).click();
  const drawer = page.getByRole('dialog', { name: 'Applications' });
  await expect(drawer).toContainText(/Since .*:\d\d [AP]M UTC \(/);
  await drawer.getByRole('textbox', { name: 'Label', exact: true }).fill('The case system');
  await drawer.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(drawer.getByRole('button', { name: 'Discard changes' })).toHaveCount(0);
  await expect(drawer.getByRole('status').filter({ hasText: /^Saved$/ })).toBeVisible();
  await lookAt(page, 'application');
  await drawer.getByRole('button', { name: 'New secret' }).click();
  const asked = page.getByRole('dialog', { name: `Make a new secret for ${clientId}?` });
  await expect(asked).toContainText('stops working at once');
  // Somebody else changes it: that is shown, and confirmed over.
  const id = new URL(page.url()).searchParams.get('application')!;
  const relabel = (label: string) => heraut.api.call('PATCH', `/admin/v1/applications/${id}`, { body: { label } });
  await relabel('Cases');
  const makeAnother = asked.getByRole('button', { name: 'New secret' });
  const changed = asked.getByRole('alert').filter({ hasText: 'This was changed after you opened the dialog' });
  await makeAnother.click();
  await expect(changed.getByRole('row').filter({ hasText: 'label' })).toContainText('Cases');
  await expect(asked).not.toContainText('nobody has seen the new secret');
  await lookAt(page, 'application-changed-meanwhile');
  // The answer is lost, and with it a secret that counts already: it says so, and another one can be made.
  await page.route('**/rotate-secret', (route) => route.fetch().then(() => route.abort()), { times: 1 });
  await makeAnother.click();
  await expect(asked.getByText('Heraut does not answer')).toBeVisible();
  await expect(asked).toContainText('nobody has seen the new secret');
  // Neither keys nor Back take it away while its answer is under way, and while a secret is shown that nobody has yet.
  const back = () => page.evaluate(() => history.back());
  const stay = (name: string) => page.getByRole('dialog', { name }).getByRole('button', { name: 'Stay' });
  const answered = new Promise<() => void>((resolve) => {
    void page.route('**/rotate-secret', (route) => resolve(() => void route.continue()), { times: 1 });
  });
  await makeAnother.click();
  const answer = await answered;
  await page.keyboard.press('Escape');
  await back();
  await stay('Leave before it is done?').click();
  await expect(stay('Leave before it is done?')).toHaveCount(0);
  await back();
  await expect(stay('Leave before it is done?')).toBeVisible();
  await lookAt(page, 'application-leaving');
  answer();
  await expect(shown.locator('pre')).not.toHaveText(first!);
  await expect(stay('Leave before it is done?')).toHaveCount(0);
  await back();
  await stay('Leave without this secret?').click();
  const [question] = await Promise.all([
    page.waitForEvent('dialog').then((dialog) => dialog.dismiss().then(() => dialog)),
    page.evaluate(() => location.reload()),
  ]);
  expect(question.type()).toBe('beforeunload');
  await expect(shown.locator('pre')).toHaveText(/^[\w-]{43}$/);
  await shown.getByRole('button', { name: 'I have copied it' }).click();

  // One that it has already, from the system before: nothing is shown of it.
  await drawer.getByRole('button', { name: 'New secret' }).click();
  const own = asked.getByLabel('A secret that it has already');
  await own.fill('short');
  const useIt = asked.getByRole('button', { name: 'Use this secret' });
  await useIt.click();
  await expect(asked.getByRole('alert')).toContainText('secret');
  await expect(own).toHaveValue('short');
  const carriedOver = `of-the-system-before-${randomUUID()}`;
  await own.fill(carriedOver);
  await lookAt(page, 'application-own-secret');
  await useIt.click();
  await expect(asked).toHaveCount(0);
  await expect(page.getByText(`The secret of ${clientId} is the one that you gave`)).toBeVisible();
  await expect(shown).toHaveCount(0);
  expect(await page.content()).not.toContain(carriedOver);
  const token = signToken({ clientId, secret: carriedOver });
  await expect.poll(async () => (await heraut.api.call('GET', '/api/v1/kanaal', { token })).status).toBe(200);

  await drawer.getByRole('button', { name: 'Remove' }).click();
  const removal = page.getByRole('dialog', { name: `Remove ${clientId}?` });
  await expect(removal).toContainText('Its tokens are refused at once');
  await expect(removal).toContainText('It has no subscriptions.');
  await expect(removal.getByRole('button', { name: 'Remove' })).toBeDisabled();
  await removal.getByLabel(`Type ${clientId} to confirm`).fill(clientId);
  await relabel('Cases, once');
  await removal.getByRole('button', { name: 'Remove' }).click();
  await expect(removal.getByRole('alert')).toContainText('Cases, once');
  await removal.getByRole('button', { name: 'Remove' }).click();
  await expect(page.getByRole('link', { name: clientId })).toHaveCount(0);
  const { body } = await heraut.api.call('GET', '/admin/v1/applications');
  expect(JSON.stringify(body)).not.toContain(clientId);
});

test('the rules of alerts are changed, and a test is sent', async ({ open, heraut }) => {
  const page = await open('alerts?tab=rules');
  await expect(page.getByText('No operator is told.')).toBeVisible();
  const rule = page.getByRole('region', { name: 'Dead letters' });
  await rule.getByLabel('At least').fill('5');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByRole('button', { name: 'Discard changes' })).toHaveCount(0);
  const isSaved = page.getByRole('status').filter({ hasText: /^Saved$/ });
  await expect(isSaved).toBeVisible();
  expect((await heraut.api.call('GET', '/admin/v1/alert-rules')).body).toMatchObject({ deadLetters: { count: 5 } });
  await rule.getByLabel('At least').fill('0');
  await expect(isSaved).toHaveCount(0);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByRole('alert').filter({ hasText: 'deadLetters.count' })).toBeVisible();
  await page.getByRole('button', { name: 'Discard changes' }).click();
  // An emptied number is not taken for another one.
  const save = page.getByRole('button', { name: 'Save', exact: true });
  await rule.getByLabel('At least').fill('');
  await expect(rule.getByText('Say how many.')).toBeVisible();
  await expect(save).toBeDisabled();
  await rule.getByRole('switch').press('Space');
  await expect(save).toBeEnabled();
  await rule.getByRole('switch').press('Space');
  await expect(rule.getByLabel('At least')).toHaveValue('5');
  const group = page.getByLabel('Wait between two messages', { exact: true });
  await group.fill('');
  await expect(group).toHaveAccessibleDescription(/^Say how long\. Alerts that come up meanwhile come together\.$/);
  await expect(save).toBeDisabled();
  await group.fill('2');
  const repeat = page.getByLabel('Tell again of what is still open after');
  await retype(repeat, '-30');
  await expect(repeat).toHaveValue('30 hours');
  const backlog = page.getByRole('region', { name: 'More arrives than is sent' });
  await backlog.getByLabel('At least').fill('0');
  await save.click();
  await expect(backlog.getByLabel('At least')).toHaveAttribute('aria-invalid', 'true');
  await expect(backlog.getByLabel('For', { exact: true })).not.toHaveAttribute('aria-invalid', 'true');
  await page.getByRole('button', { name: 'Discard changes' }).click();
  await page.getByRole('button', { name: 'Restore the defaults' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Restore the defaults' }).click();
  await expect(rule.getByLabel('At least')).toHaveValue('1');

  await page.getByRole('button', { name: 'Send a test' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Send a test' }).click();
  const result = page.getByRole('dialog', { name: 'The test' });
  await expect(result).toContainText('There is no operator to send it to.');
  await result.getByRole('button', { name: 'Close' }).click();
  await expect(result).toHaveCount(0);
});

const subject = `subscription/${randomUUID()}`;
const alertOf = (id: string, resolvedAt: string | null): AlertPage['alerts'][number] => ({
  id,
  rule: 'subscription-disabled',
  subject,
  since: '2026-11-20T10:00:00.000Z',
  openedAt: '2026-11-20T10:00:10.000Z',
  resolvedAt,
  toldAt: '2026-11-20T10:00:15.000Z',
  title: 'A subscription is disabled',
  what: 'The receiver https://receiver.example.org answered 410 Gone. Nothing is sent to it.',
  toDo: 'Ask its owner.',
  runbook: 'docs/operations.md#alert-subscription-disabled',
  details: {},
});

// Rules are looked at every 15 seconds: the test does not wait for that.
test('alerts that are open say what to do, and lead to earlier ones of the same', async ({ open, page }) => {
  const asked: URL[] = [];
  await page.route('**/admin/v1/alerts?*', (route) => {
    const url = new URL(route.request().url());
    asked.push(url);
    const isOpen = url.searchParams.get('state') === 'open';
    const isFirst = url.searchParams.get('cursor') === null;
    const alerts = isOpen ? [alertOf(isFirst ? '7' : '6', null)] : [alertOf('3', '2026-11-20T12:00:00.000Z')];
    return route.fulfill({ json: { alerts, nextCursor: isOpen && isFirst ? '7' : null } satisfies AlertPage });
  });
  await open('alerts');
  const titles = page.getByRole('heading', { name: 'A subscription is disabled' });
  await expect(titles).toHaveCount(1);
  await page.getByRole('button', { name: 'Show more' }).click();
  await expect(titles).toHaveCount(2);
  await page.reload();
  await expect(page.getByRole('heading', { name: 'A subscription is disabled' })).toBeVisible();
  await expect(page.getByRole('link', { name: subject })).toHaveAttribute('href', new RegExp(`/${subject.slice(13)}$`));
  await lookAt(page, 'alerts-open');
  await page.getByRole('link', { name: 'Earlier ones of the same' }).click();
  await expect(page.getByRole('button', { name: `Only ${subject}` })).toBeVisible();
  await expect(page.getByRole('row').filter({ hasText: '2 h' })).toHaveCount(1);
  expect(Object.fromEntries(asked.at(-1)!.searchParams)).toEqual({
    state: 'resolved',
    rule: 'subscription-disabled',
    subject,
    limit: '100',
  });
  await lookAt(page, 'alerts-past');
  await page.getByRole('row').getByRole('link', { name: 'A subscription is disabled' }).click();
  await expect(page.getByRole('dialog', { name: 'Alert' })).toContainText('Ask its owner.');
  // The address leads to the alert, whatever is listed.
  await page.route('**/admin/v1/alerts?cursor=*', (route) =>
    route.fulfill({
      json: { alerts: [alertOf('2', '2026-11-19T12:00:00.000Z')], nextCursor: '2' } satisfies AlertPage,
    }),
  );
  const of = async (id: string) => {
    await open(`alerts?tab=past&alert=${id}`);
    return page.getByRole('dialog', { name: 'Alert' });
  };
  await expect(await of('2')).toContainText('Ask its owner.');
  await expect(await of('1')).toContainText('There is no such alert');
});

test('what others change comes into the audit log while it is looked at', async ({ open, page, heraut }) => {
  await page.clock.install();
  await open('audit');
  await expect(page.getByText(/^As of /)).toBeVisible();
  const { body } = await heraut.api.call('POST', '/admin/v1/channels', { body: { name: newName('zaken') } });
  const link = page.locator(`a[href$="/channels/${(body as { id: string }).id}"]`);
  await asTimePasses(page, () => expect(link).toBeVisible(atOnce));
});

test('the audit log stays up to date in a window as tall as they are, and a search goes on under the focus', async ({
  open,
  page,
}) => {
  await page.clock.install();
  await page.setViewportSize({ width: 1280, height: 2160 });
  const pageOf = (url: URL) => ({
    entries: Array.from({ length: Number(url.searchParams.get('limit') ?? 50) }, (_, nr) =>
      auditEntry(9_999 - nr - Number(url.searchParams.get('cursor') ?? 0), 'channel.changed'),
    ),
    nextCursor: '500',
  });
  const asked: URL[] = [];
  let answer = (route: Route, url: URL): void => void route.fulfill({ json: pageOf(url) });
  await page.route('**/admin/v1/audit*', (route) => {
    const url = new URL(route.request().url());
    asked.push(url);
    answer(route, url);
  });
  await open('audit');
  await expect(page.getByRole('row').nth(40)).toBeVisible();
  await asTimePasses(page, async () => expect(asked.length).toBeGreaterThanOrEqual(3));
  expect(asked.filter(({ searchParams }) => searchParams.has('cursor'))).toEqual([]);

  // Nothing is found in what was searched: it is not searched again, and the button stays while it goes on.
  answer = (route) => void route.fulfill({ json: { entries: [], nextCursor: '500' } });
  await open('audit?client=nobody');
  const searchOn = page.getByRole('button', { name: 'Search on' });
  await expect(searchOn).toBeVisible();
  const before = asked.length;
  await page.clock.fastForward(30_000);
  const underWay = new Promise<Route>((resolve) => (answer = resolve));
  await searchOn.click();
  const route = await underWay;
  expect(asked).toHaveLength(before + 1);
  await expect(searchOn).toBeFocused();
  await expect(searchOn).toHaveAttribute('aria-busy', 'true');
  await route.fulfill({ json: { entries: [], nextCursor: '1000' } });
  await expect(searchOn).toHaveAttribute('aria-busy', 'false');
  await expect(searchOn).toBeFocused();
});

test('the address of an entry of the audit log leads to it, also where others of its moment fill a page', async ({
  open,
  page,
}) => {
  await page.route('**/admin/v1/audit*', (route) => {
    const { searchParams } = new URL(route.request().url());
    if (!searchParams.has('from')) return route.fulfill({ json: { entries: [], nextCursor: null } });
    const cursor = Number(searchParams.get('cursor') ?? 1);
    const entries = [auditEntry(9 - cursor, `of-page-${cursor}`)];
    return route.fulfill({ json: { entries, nextCursor: cursor < 3 ? String(cursor + 1) : null } });
  });
  const { at } = auditEntry(6, '');
  await open(`audit?entry=${encodeURIComponent(`6@${at}`)}`);
  await expect(page.getByRole('dialog', { name: 'Change' }).getByText('of-page-3')).toBeVisible();
});

test('the audit log is filtered, and shows before and after side by side', async ({ open, heraut }) => {
  const name = await heraut.createChannel(['zaaktype', 'besluittype']);
  const { body } = await heraut.api.call('GET', '/admin/v1/channels');
  const { id } = (body as { channels: { id: string; name: string }[] }).channels.find((each) => each.name === name)!;
  await heraut.api.call('PATCH', `/admin/v1/channels/${id}`, {
    body: { filters: ['zaaktype', 'bronorganisatie'], maxAgeSeconds: 60 },
  });
  const page = await open('audit');
  await expect(page.getByRole('row').filter({ hasText: name }).first()).toBeVisible();
  await page.getByPlaceholder('channel/…, retry-policy').fill(`channel/${id}`);
  await expect(page).toHaveURL(new RegExp(`subject=channel%2F${id}`));
  await expect(page.getByRole('row').filter({ hasText: 'channel.' })).toHaveCount(2);
  await page.getByPlaceholder('Any action').fill('channel.changed');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('row').filter({ hasText: 'channel.' })).toHaveCount(1);
  await page.getByRole('link', { name: 'channel.changed' }).click();
  const entry = page.getByRole('dialog', { name: 'Change' });
  const filters = entry.getByRole('row').filter({ hasText: 'filters' });
  await expect(filters.getByRole('cell').first()).toContainText('−  "besluittype"');
  await expect(filters.getByRole('cell').last()).toContainText('+  "bronorganisatie"');
  await expect(entry.getByRole('row').filter({ hasText: 'maxAge' })).toContainText('60');
  await lookAt(page, 'audit-entry');
  // The address leads to the entry, whatever is listed.
  const place = new URL(page.url()).searchParams.get('entry')!;
  await page.goto(`${heraut.api.url}/console/audit?client=nobody&entry=${encodeURIComponent(place)}`);
  await expect(entry.getByText('bronorganisatie')).toBeVisible();
  await entry.getByRole('button', { name: 'Close' }).click();
  await expect(page.getByRole('heading', { name: 'No change fits these filters' })).toBeVisible();
  await page.getByRole('button', { name: 'Clear the filters' }).click();
  await expect(page.getByRole('row').filter({ hasText: 'channel.changed' }).first()).toBeVisible();
});

test('texts are erased by their main object, once they are counted', async ({ open, heraut }) => {
  const channel = await heraut.createChannel();
  const hoofdObject = `https://example.org/${randomUUID()}`;
  await heraut.publish(channel, { hoofdObject });
  await heraut.publish(channel, { hoofdObject });
  const page = await open('settings?tab=retention');
  const mainObject = page.getByRole('textbox', { name: 'Main object', exact: true });
  const other = `https://example.org/${randomUUID()}`;
  await heraut.publish(channel, { hoofdObject: other });
  for (const sought of [other, hoofdObject]) {
    await mainObject.fill(sought);
    await page.getByRole('button', { name: 'Count them' }).click();
    await expect(mainObject).toHaveValue('');
  }
  // The main object is named as it was typed, and to those who come later by its hash.
  await page.getByRole('button', { name: 'Erase 1', exact: true }).click();
  const ofOther = page.getByRole('dialog', { name: 'Erase the text of 1 notification?' });
  await expect(ofOther).toContainText(other);
  await ofOther.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByText(hoofdObject, { exact: true })).toBeVisible();
  await page.reload();
  await page.getByRole('button', { name: 'Erase 1', exact: true }).click();
  const hash = createHash('sha256').update(other).digest('hex').slice(0, 12);
  await expect(ofOther).toContainText(`SHA-256 begins with ${hash}`);
  await expect(ofOther).toContainText(/Requested .*\d:\d\d/);
  await expect(page.getByText(hash)).toHaveCount(2);
  await lookAt(page, 'settings-erase');
  await ofOther.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Erase 2' }).click();
  const asked = page.getByRole('dialog', { name: 'Erase the texts of 2 notifications?' });
  await asked.getByLabel('Type 2 to confirm').fill('2');
  await asked.getByRole('button', { name: 'Erase 2' }).click();
  await expect(page.getByText('done', { exact: true }).first()).toBeVisible();
  await lookAt(page, 'settings-retention');
});

test('the text of one notification is erased once its id is confirmed', async ({ open, heraut }) => {
  const { id } = await heraut.publish(await heraut.createChannel());
  const page = await open('settings?tab=retention');
  await page.getByRole('radio', { name: 'One notification' }).check();
  await page.getByRole('textbox', { name: 'Id of the notification' }).fill(id);
  await page.getByRole('button', { name: 'Erase', exact: true }).click();
  const asked = page.getByRole('dialog', { name: 'Erase the text of this notification?' });
  await expect(asked.getByRole('link', { name: id })).toHaveAttribute('href', new RegExp(`/notifications/${id}$`));
  await asked.getByRole('button', { name: 'Erase', exact: true }).click();
  await expect(asked).toHaveCount(0);
  await expect(page.getByRole('link', { name: id })).toBeVisible();
});

test('an erasure is found and confirmed, however many were asked for since', async ({ open, page, heraut }) => {
  const channel = await heraut.createChannel();
  const count = (mainObject: string) => heraut.api.call('POST', '/admin/v1/erasures', { body: { mainObject } });
  const hoofdObject = `https://example.org/${randomUUID()}`;
  for (let published = 0; published < 3; published += 1) await heraut.publish(channel, { hoofdObject });
  await count(hoofdObject);
  for (let later = 0; later < 2; later += 1) await count(`https://example.org/${randomUUID()}`);
  // Fifty by default: as many would be in the audit log that other tests look at.
  await page.route(/\/admin\/v1\/erasures(\?.*)?$/, (route) => {
    const url = new URL(route.request().url());
    if (route.request().method() === 'GET') url.searchParams.set('limit', '2');
    return route.continue({ url: String(url) });
  });
  await open('settings?tab=retention');
  await expect(page.getByText(/^a main object /)).toHaveCount(2);
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByRole('button', { name: 'Erase 3', exact: true }).click();
  const asked = page.getByRole('dialog', { name: 'Erase the texts of 3 notifications?' });
  await asked.getByLabel('Type 3 to confirm').fill('3');
  await asked.getByRole('button', { name: 'Erase 3' }).click();
  await expect(page.getByText(/Found 3 · Erased 3/)).toBeVisible();
});

test('a day that is kept says why it may be, and one that was dropped since then does not', async ({ open, page }) => {
  const day = (date: string, dropped: object | null) => ({
    ...{ day: date, bodies: null, exported: null, exportFailure: null },
    ...{ keptUnfinishedAt: '2026-11-20T01:00:00.000Z', dropped },
  });
  const counts = { notifications: 7, deliveries: 7, attempts: 7, bytes: 1000 };
  const days = [day('2026-10-02', null), day('2026-10-01', { at: '2026-11-21T01:00:00.000Z', ...counts })];
  await page.route(/\/admin\/v1\/retention$/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), days } });
  });
  await open('settings?tab=retention');
  await expect(page.getByRole('row').filter({ hasText: '2026-10-02' })).toContainText('still needed');
  await expect(page.getByRole('row').filter({ hasText: '7 notifications' })).toContainText('2026-10-01');
  await expect(page.getByText('still needed')).toHaveCount(1);
});

test('a configuration is loaded, mended by line, compared, and applied as it was seen', async ({ open, heraut }) => {
  const name = await heraut.createChannel();
  const clientId = newName('archive');
  const page = await open('settings?tab=configuration');
  await page.getByRole('button', { name: 'Load what is there' }).click();
  const text = page.getByLabel('Configuration in YAML');
  await expect(text).toHaveValue(new RegExp(`name: ${name}`));
  await page.getByRole('button', { name: 'Show what would change' }).click();
  await expect(page.getByText('Nothing would change.')).toBeVisible();

  await text.fill(
    [
      'channels:',
      `  - name: ${name}`,
      '    filters: [zaaktype]',
      '    retries: 3',
      'applications:',
      `  - clientId: ${clientId}`,
      '    secret: { value_from: { env: ARCHIVE_SECRET } }',
    ].join('\n'),
  );
  await expect(page.getByText('The text was changed since.')).toBeVisible();
  await page.getByRole('button', { name: 'Show what would change' }).click();
  await expect(page.getByRole('alert')).toContainText('2 things are wrong');
  await expect(page.getByRole('alert')).toContainText('The variable ARCHIVE_SECRET has no value here');
  await lookAt(page, 'settings-configuration-wrong');
  await page.getByRole('button', { name: 'Line 4, column 5' }).click();
  await expect(text).toBeFocused();
  await page.keyboard.press('Delete');
  await text.fill((await text.inputValue()).replace(/\n {4}\n/, '\n'));
  await page.getByLabel('Variable ARCHIVE_SECRET').fill('a-secret-of-the-archive');
  await page.getByRole('button', { name: 'Show what would change' }).click();
  const change = page.getByRole('region', { name: `change channels ${name}` });
  await expect(change).toContainText('"zaaktype"');
  await expect(page.getByRole('region', { name: `create applications ${clientId}` })).toContainText('a secret is set');
  await lookAt(page, 'settings-configuration-plan');

  const { body } = await heraut.api.call('GET', '/admin/v1/channels');
  const { id } = (body as { channels: { id: string; name: string }[] }).channels.find((each) => each.name === name)!;
  await heraut.api.call('PATCH', `/admin/v1/channels/${id}`, { body: { filters: ['other'] } });
  await page.getByRole('button', { name: 'Apply' }).click();
  const asked = page.getByRole('dialog', { name: 'Apply 2 changes?' });
  await asked.getByRole('button', { name: 'Apply' }).click();
  await expect(asked).toContainText('so nothing was done');
  await asked.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Show what would change' }).click();
  await expect(change).toContainText('"other"');
  await page.getByRole('button', { name: 'Apply' }).click();
  await asked.getByRole('button', { name: 'Apply' }).click();
  await expect(page.getByText('Done: it is as the text says.')).toBeVisible();
  expect((await heraut.api.call('GET', `/admin/v1/channels/${id}`)).body).toMatchObject({ filters: ['zaaktype'] });
});

test('what a pruned configuration removes is named, and its number asked for', async ({ open, heraut }) => {
  const clientId = newName('leaves');
  await heraut.api.call('POST', '/admin/v1/applications', { body: { clientId, label: 'Leaves' } });
  const { body } = await heraut.api.call('GET', '/admin/v1/applications');
  const { applications } = body as { applications: { clientId: string }[] };
  const kept = applications.filter((each) => each.clientId !== clientId);
  const page = await open('settings?tab=configuration');
  const text = page.getByLabel('Configuration in YAML');
  await text.fill(JSON.stringify({ applications: kept.map((each) => ({ clientId: each.clientId })) }));
  await page.getByLabel('Remove applications and subscriptions that it does not name').check();
  await page.getByRole('button', { name: 'Show what would change' }).click();
  await expect(page.getByText('1 to remove')).toBeVisible();
  await page.getByRole('button', { name: 'Apply' }).click();
  const asked = page.getByRole('dialog', { name: 'Apply 1 change?' });
  await expect(asked).toContainText(`applications ${clientId} (Leaves)`);
  await asked.getByLabel('Type 1 to confirm').fill('1');
  await asked.getByRole('button', { name: 'Apply' }).click();
  await expect(page.getByText('Done: it is as the text says.')).toBeVisible();
  const after = await heraut.api.call('GET', '/admin/v1/applications');
  expect(JSON.stringify(after.body)).not.toContain(clientId);
});

test('the general retry policy is changed', async ({ open, heraut }) => {
  const page = await open('settings');
  await expect(page.getByRole('tab', { name: 'Retry policy' })).toHaveAttribute('aria-selected', 'true');
  const retries = page.getByRole('main').getByRole('textbox').first();
  await expect(retries).toHaveValue('7');
  await retries.fill('3');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByRole('button', { name: 'Discard changes' })).toHaveCount(0);
  expect((await heraut.api.call('GET', '/admin/v1/retry-policy')).body).toMatchObject({ maxRetries: 3 });
  await heraut.api.call('PUT', '/admin/v1/retry-policy', { body: {} });
  await page.getByRole('tab', { name: 'Installation' }).click();
  await expect(page).toHaveURL(/tab=installation/);
  await expect(page.getByRole('tabpanel').getByRole('heading').first()).toBeVisible();
});
