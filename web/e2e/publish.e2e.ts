import type { Page, Route } from '@playwright/test';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { curlOf } from '../src/pages/publish/curl.js';
import { eventually } from '../../test/support/eventually.js';
import { answer } from '../../test/support/receiver.js';
import { expect, lookAt, test } from './harness.js';

const url = 'https://cases.example.org/cases/1';

async function fill(page: Page, fields: Record<string, string>): Promise<void> {
  for (const [name, value] of Object.entries(fields)) await page.getByRole('textbox', { name }).fill(value);
}

test('a form made from the channel publishes as a publisher does, and shows who would get it and what became of it', async ({
  open,
  heraut,
  receiver,
}) => {
  const channel = await heraut.createChannel(['kind', 'region']);
  const entry = (kind: string) => ({ channel, url: receiver.url, kanalen: [{ naam: channel, filters: { kind } }] });
  const [fits] = [await heraut.subscribe(entry('permit')), await heraut.subscribe(entry('other'))];
  const page = await open('publish');
  await page.getByRole('combobox', { name: 'Channel' }).fill(channel);
  await page.getByRole('option', { name: channel }).click();
  await expect(page).toHaveURL(new RegExp(`channel=${channel}`));
  await expect(page.getByText('Fill in what is missing')).toBeVisible();
  await fill(page, { 'Main object': url, 'URL of the resource': `${url}/status`, kind: 'permit' });
  await page.getByRole('textbox', { name: 'Resource resource', exact: true }).fill('status');
  await expect(page.getByText('1 of 2 subscriptions on this channel')).toBeVisible();
  await lookAt(page, 'publish-form');

  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  await expect(page.getByRole('heading', { name: 'Published' })).toBeFocused();
  await expect(page.getByText('Delivered to 1 of 1', { exact: true })).toBeVisible();
  await lookAt(page, 'publish-published');
  const id = new URL(page.url()).searchParams.get('published')!;
  await heraut.becomes('delivered', id, fits);
  const received = receiver.notifications.filter(({ headers }) => headers['webhook-id'] === id);
  expect(received).toHaveLength(1);
  expect(JSON.parse(received[0]!.text)).toMatchObject({
    kanaal: channel,
    actie: 'create',
    hoofdObject: url,
    resource: 'status',
    resourceUrl: `${url}/status`,
    kenmerken: { kind: 'permit' },
  });
  await page.reload();
  await expect(page.getByText('Delivered to 1 of 1')).toBeVisible();
  await expect(page.getByRole('textbox', { name: 'Main object' })).toHaveValue(url);
  await expect(page.getByRole('link', { name: 'Everything about this notification' })).toHaveAttribute(
    'href',
    new RegExp(`/notifications/${id}$`),
  );
});

test('what became of a notification of which a part is read is told of that part', async ({
  open,
  heraut,
  receiver,
  page,
}) => {
  const channel = await heraut.createChannel();
  for (let n = 0; n < 2; n++) await heraut.subscribe({ channel, url: receiver.url });
  receiver.next(answer(415), answer(415));
  const { id } = await heraut.publish(channel);
  await eventually(async () => {
    const { body } = await heraut.api.call('GET', `/admin/v1/notifications/${id}`);
    return (body as { deliveries: { state: string }[] }).deliveries.every(({ state }) => state === 'failed');
  }, 'all to fail');
  // As where what receivers answered fills a page: the other delivery may be under way.
  await page.route(`**/admin/v1/notifications/${id}`, (route) =>
    route.continue({ url: `${route.request().url()}?limit=1` }),
  );
  await open(`publish?published=${id}`);
  await expect(page.getByText('Delivered to 0 of 1', { exact: true })).toBeVisible();
  await expect(page.getByText('Its page shows the others.')).toBeVisible();
});

test('what the API refuses is said at its field, in the words of the viewer, and nothing that was typed is lost', async ({
  open,
  heraut,
}) => {
  const channel = await heraut.createChannel(['kind', 'region']);
  const page = await open(`publish?channel=${channel}`);
  await fill(page, { 'Main object': 'no url' });
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  await expect(page.getByText('It was not published: 3 fields are not right.')).toBeVisible();
  const resource = page.getByRole('textbox', { name: 'Resource resource', exact: true });
  await expect(resource).toBeFocused();
  await expect(resource).toHaveAccessibleDescription(/This is needed\./);
  const mainObject = page.getByRole('textbox', { name: 'Main object' });
  await expect(mainObject).toHaveAccessibleDescription(/This is no http or https URL\./);
  await expect(mainObject).toHaveValue('no url');
  await lookAt(page, 'publish-refused');

  await fill(page, { 'Main object': url, 'URL of the resource': url });
  await resource.fill('status');
  await page.getByRole('button', { name: 'Add a characteristic' }).click();
  await expect(page.getByRole('textbox', { name: 'Name of characteristic 1' })).toBeFocused();
  await page.keyboard.type('colour');
  await page.getByRole('textbox', { name: 'Value of characteristic 1' }).fill('red');
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  // The forecast beside the form says so too, as soon as it is there.
  const characteristics = page.getByRole('group', { name: 'Characteristics' });
  await expect(characteristics.getByRole('alert')).toContainText('These names do not fit the channel');
  await fill(page, { kind: 'a', region: 'north' });
  await page.getByRole('button', { name: 'When, and other terms' }).click();
  await fill(page, { 'Idempotency key': 'ключ' });
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  await expect(page.getByRole('textbox', { name: 'Idempotency key' })).toHaveAccessibleDescription(/signs of ASCII/);
  await fill(page, { 'Idempotency key': randomUUID() });
  // A part of a time is nothing to the browser: it would be published at once.
  const notBefore = page.getByLabel('Not before');
  await notBefore.pressSequentially('11');
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  await expect(notBefore).toHaveAccessibleDescription(/This is no time\./);
  await notBefore.fill('');
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  await expect(page.getByText('Nobody asked for it')).toBeVisible();
  await lookAt(page, 'publish-nobody');
});

test('a publication that is not answered is tried again as the same one', async ({ open, heraut }) => {
  const channel = await heraut.createChannel();
  const page = await open(`publish?channel=${channel}`);
  await fill(page, { 'Main object': url, 'URL of the resource': url });
  await page.getByRole('textbox', { name: 'Resource resource', exact: true }).fill('status');
  const keys: (string | undefined)[] = [];
  await page.route('**/admin/v1/notifications', async (route) => {
    keys.push(route.request().headers()['idempotency-key']);
    // It arrives, and the answer to the first one is lost on its way back.
    const response = await route.fetch();
    if (keys.length === 1) await route.abort();
    else await route.fulfill({ response });
  });
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  await expect(page.getByText('Heraut does not answer', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  await expect(page.getByRole('heading', { name: 'Published before under this key' })).toBeVisible();
  expect(keys).toEqual([keys[0], keys[0]]);
  const { body } = await heraut.api.call('GET', `/admin/v1/notifications?channel=${channel}`);
  expect((body as { notifications: unknown[] }).notifications).toHaveLength(1);
});

test('what is typed while a publication is under way goes neither with it nor in another one, and its error is said', async ({
  open,
  page,
  heraut,
}) => {
  const [channel, other] = [await heraut.createChannel(), await heraut.createChannel()];
  await open(`publish?channel=${channel}`);
  await fill(page, { 'Main object': url, 'URL of the resource': url });
  const resource = page.getByRole('textbox', { name: 'Resource resource', exact: true });
  await resource.fill('status');
  const held: Route[] = [];
  await page.route('**/admin/v1/notifications', (route) => void held.push(route));
  const publish = page.getByRole('button', { name: 'Publish', exact: true });
  await publish.click();
  await expect.poll(() => held.length).toBe(1);
  await resource.fill('statuses');
  await expect(publish).toHaveAttribute('aria-busy', 'true');
  await resource.press('Enter');
  await publish.click({ force: true });
  await expect(page.getByRole('button', { name: 'Clear the form' })).toBeDisabled();
  await held[0]!.abort();
  await expect(page.getByText('Heraut does not answer', { exact: true })).toBeVisible();
  await expect(resource).toHaveValue('statuses');
  expect(held).toHaveLength(1);

  await publish.click();
  await expect.poll(() => held.length).toBe(2);
  await page.getByRole('combobox', { name: 'Channel' }).fill(other);
  await page.getByRole('option', { name: other }).click();
  await held[1]!.continue();
  await expect(page.getByRole('heading', { name: 'Published' })).toBeFocused();
  await expect(page).toHaveURL(new RegExp(`channel=${other}&published=`));
});

test('an answer that comes when another page is open changes nothing there', async ({ open, page, heraut }) => {
  await page.clock.install();
  const channel = await heraut.createChannel();
  await open(`publish?channel=${channel}`);
  await fill(page, { 'Main object': url, 'URL of the resource': url });
  await page.getByRole('textbox', { name: 'Resource resource', exact: true }).fill('status');
  const underWay = new Promise<() => Promise<void>>((resolve) => {
    void page.route('**/admin/v1/notifications', (route) => resolve(() => route.continue()), { times: 1 });
  });
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  const goOn = await underWay;
  await page.getByRole('link', { name: 'Dead letters' }).click();
  await page.getByRole('dialog', { name: 'Leave before it is done?' }).getByRole('button', { name: 'Leave' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Dead letters' })).toBeVisible();
  const answered = page.waitForResponse('**/admin/v1/notifications');
  await goOn();
  expect((await answered).status()).toBe(201);
  // The list is read again, and is that of before.
  const readAgain = page.waitForRequest(/\/admin\/v1\/dead-letters/);
  await page.clock.fastForward(10_000);
  expect((await readAgain).url()).not.toContain('channel=');
  await expect(page).toHaveURL(/\/dead-letters$/);
});

test('a notification can be published once more, and a duplicate says of what', async ({ open, heraut }) => {
  const channel = await heraut.createChannel(['objectKind']);
  const { body } = await heraut.api.call('GET', '/admin/v1/channels');
  const { id: channelId } = (body as { channels: { id: string; name: string }[] }).channels.find(
    ({ name }) => name === channel,
  )!;
  const deduplication = { fields: ['hoofdObject'], withinSeconds: 60 };
  await heraut.api.call('PATCH', `/admin/v1/channels/${channelId}`, { body: { deduplication } });
  const nasty = `<script>alert(1)</script> ‮'"\``;
  const { id } = await heraut.publish(channel, { kenmerken: { object_kind: nasty } });
  const page = await open(`publish?like=${id}`);
  await expect(page.getByRole('textbox', { name: 'objectKind' })).toHaveValue(nasty);
  await expect(page).toHaveURL(new RegExp(`\\?channel=${channel}$`));
  await expect(page.getByText('It would not be sent: the channel takes it for a duplicate of')).toBeVisible();
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  await expect(page.getByRole('heading', { name: 'Not sent: a duplicate' })).toBeVisible();
  await expect(page.getByRole('link', { name: id })).toBeVisible();
});

test('the same as curl is one command of a shell, whatever was typed', () => {
  const nasty = `it's $(touch x) "\`\\ \n@file`;
  const command = curlOf({
    url: `https://heraut.example/admin/v1/notifications?a='b'`,
    headers: { 'Idempotency-Key': nasty },
    body: { kenmerken: { [nasty]: nasty } },
  });
  const words = execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${command}`], {
    encoding: 'utf8',
    env: { TOKEN: 'a b' },
  });
  expect(words.split('\0')).toEqual([
    '-sS',
    '-X',
    'POST',
    `https://heraut.example/admin/v1/notifications?a='b'`,
    '-H',
    'Authorization: Bearer a b',
    '-H',
    'Content-Type: application/json',
    '-H',
    `Idempotency-Key: ${nasty}`,
    '--data-raw',
    JSON.stringify({ kenmerken: { [nasty]: nasty } }),
    '',
  ]);
});
