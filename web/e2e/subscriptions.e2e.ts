import type { Page, Route } from '@playwright/test';
import { randomUUID } from 'node:crypto';
import type { Installation } from '../../test/support/installation.js';
import { answer, protectedReceiver } from '../../test/support/receiver.js';
import { authority, clients, StrictReceiver } from '../../test/support/strict-receiver.js';
import { asTimePasses, atOnce, expect, lookAt, test } from './harness.js';

const admin = (heraut: Installation, method: string, path: string, body?: object) =>
  heraut.api.call(method, `/admin/v1/${path}`, { body });

interface Made {
  id: string;
  channel: string;
  url: string;
}

/** A callback of its own, by which it is found among those of other tests. */
async function subscribe(heraut: Installation, receiverUrl: string): Promise<Made> {
  const channel = await heraut.createChannel(['kind', 'region']);
  const url = `${receiverUrl}/${randomUUID()}`;
  return { id: await heraut.subscribe({ channel, url }), channel, url };
}

const tab = (page: Page, name: string) => page.getByRole('tab', { name, exact: true }).click();
const notice = (page: Page, text: string) => page.getByRole('alert').filter({ hasText: text });
const figure = (page: Page, name: string) => page.getByRole('link', { name: new RegExp(`^${name}: `) });

test('subscriptions are listed with how they stand, and found by what is known of them', async ({
  open,
  page,
  heraut,
  receiver,
}) => {
  const [one, other] = [await subscribe(heraut, receiver.url), await subscribe(heraut, receiver.url)];
  await admin(heraut, 'POST', `subscriptions/${other.id}/pause`);
  await admin(heraut, 'PATCH', `subscriptions/${other.id}`, { ratePerSecond: 50, maxConcurrency: 4 });
  await heraut.publish(other.channel);
  const read: string[] = [];
  page.on('request', (request) => void read.push(new URL(request.url()).pathname));
  await open('subscriptions');
  const table = page.getByRole('table', { name: 'Subscriptions' });
  await page.getByRole('searchbox').fill(other.url.slice(-20).toUpperCase());
  const row = table.getByRole('row').filter({ hasText: other.url });
  await expect(page.getByText('1 subscription', { exact: true })).toBeVisible();
  await expect(row).toContainText('paused');
  await expect(row).toContainText('50/s');
  await expect(row).toContainText('4 at once');
  await expect(row.getByRole('cell').nth(4)).toContainText('1');
  await expect(page).toHaveURL(/\?text=/);
  await page.getByRole('searchbox').fill(one.channel);
  await expect(table.getByRole('row').filter({ hasText: one.url })).toContainText('enabled');
  // There may be very many: they are read when somebody wants to choose one.
  expect(read.filter((path) => /\/admin\/v1\/(channels|applications)$/.test(path))).toEqual([]);
  await page.getByRole('combobox', { name: 'Channel' }).fill(one.channel);
  await page.getByRole('option', { name: one.channel }).click();
  await expect(page).toHaveURL(new RegExp(`channel=${one.channel}`));
  await page.getByRole('combobox', { name: 'State' }).click();
  await page.getByRole('option', { name: 'paused' }).click();
  await page.getByRole('button', { name: 'Clear the filters' }).click();
  await expect(table.getByRole('row').nth(2)).toBeVisible();
  await page.getByRole('searchbox').fill(one.id);
  await expect(page.getByText('1 subscription', { exact: true })).toBeVisible();
  await table.getByRole('link', { name: one.url }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(one.url);
  await page.goBack();
  await expect(page.getByRole('searchbox')).toHaveValue(one.id);
});

test('however many subscriptions are active, how much arrived is asked of those that are shown', async ({
  open,
  page,
  heraut,
  receiver,
}) => {
  const { id, url } = await subscribe(heraut, receiver.url);
  const counts = { accepted: 0, duplicates: 0, delivered: 3, failedAttempts: 2, gaveUp: 1 };
  const since = '2026-11-22T00:00:00.000Z';
  const asked: (string | null)[] = [];
  await page.route('**/admin/v1/activity/totals?*', (route) => {
    const ids = new URL(route.request().url()).searchParams.get('ids');
    asked.push(ids);
    // Those of all of them have no end.
    const totals = ids?.split(',').includes(id) ? [{ id, ...counts, lastAt: since }] : [];
    return route.fulfill({ json: { since, totals, nextCursor: ids === null ? 'YQ' : null } });
  });
  await open(`subscriptions?text=${url.split('/').at(-1)}`);
  await expect(page.getByRole('row').filter({ hasText: url })).toContainText(/\b75\s?%/);
  expect([...new Set(asked)]).toEqual([id]);

  asked.length = 0;
  const buckets = [counts, { ...counts, delivered: 9, gaveUp: 3 }].map((each, nr) => ({
    at: `2026-11-22T0${nr}:00:00.000Z`,
    ...each,
  }));
  await page.route('**/admin/v1/activity?*', (route) =>
    route.fulfill({ json: { bucketSeconds: 3600, countedUntil: since, buckets } }),
  );
  await open(`subscriptions/${id}`);
  await expect(figure(page, 'Arrived in 24 h')).toContainText(/^75\s?%/);
  await expect(page.getByText(/12 delivered/)).toBeVisible();
  expect(asked).toEqual([]);
});

test('how a subscription stands is not said before it is known', async ({ open, page, heraut, receiver }) => {
  const { id, url, channel } = await subscribe(heraut, receiver.url);
  let isMended = false;
  await page.route('**/admin/v1/subscriptions/situations*', (route) =>
    isMended ? route.continue() : route.fulfill({ status: 500, json: { status: 500, code: 'error', title: 'Error' } }),
  );
  await open(`subscriptions?text=${channel}`);
  const row = page.getByRole('table', { name: 'Subscriptions' }).getByRole('row').filter({ hasText: url });
  await expect(row).toContainText('not known');
  await expect(page.getByRole('alert')).toContainText('Error');
  const asked = page.getByRole('dialog', { name: 'Delete this subscription?' });
  const askToDelete = async () => {
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
  };
  await row.getByRole('link', { name: url }).click();
  await askToDelete();
  await expect(asked).toContainText('it is not known how many there are');
  await asked.getByRole('button', { name: 'Cancel' }).click();
  await page.goBack();
  await expect(page.getByRole('alert')).toContainText('Error');
  isMended = true;
  await expect(row).toContainText('enabled');
  await expect(page.getByRole('alert')).toHaveCount(0);
  await admin(heraut, 'POST', `subscriptions/${id}/pause`);
  await heraut.becomes('held', (await heraut.publish(channel)).id, id);
  await row.getByRole('link', { name: url }).click();
  await expect(figure(page, 'Held')).toHaveText('1');
  await askToDelete();
  await expect(asked).toContainText('At least 1 delivery that has not ended is cancelled.');
});

test('the page of a subscription knows how it stands, also by an id in capitals', async ({
  open,
  heraut,
  receiver,
}) => {
  const { id, url } = await subscribe(heraut, receiver.url);
  const page = await open(`subscriptions/${id.toUpperCase()}`);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(url);
  await expect(page.getByText('Nothing holds it up')).toBeVisible();
});

test('a probe that nothing is held for comes with the next delivery, and is not long overdue', async ({
  open,
  page,
  heraut,
  receiver,
}) => {
  const { id } = await subscribe(heraut, receiver.url);
  const longAgo = new Date(Date.now() - 10_800_000).toISOString();
  const endpoint = { address: receiver.url, reason: 'HTTP 503', openedAt: longAgo, nextProbeAt: longAgo };
  const nothing = { held: 0, oldestHeldAt: null, waiting: 0, dead: 0, lastFailure: null };
  await page.route('**/admin/v1/subscriptions/situations*', (route) =>
    route.fulfill({ json: { situations: [{ subscriptionId: id, ...nothing, endpoint }] } }),
  );
  await open(`subscriptions/${id}`);
  await expect(page.getByText('It is tried again with its next delivery.')).toBeVisible();
  await expect(page.getByText('The next probe is due')).toHaveCount(0);
});

test('a subscription is made for an application; what was typed stays when its callback is refused', async ({
  open,
  heraut,
  receiver,
}) => {
  const channel = await heraut.createChannel(['kind']);
  await heraut.publish(channel, { kenmerken: { kind: 'permit' } });
  await heraut.publish(channel, { kenmerken: { kind: 'other' } });
  const page = await open('subscriptions');
  await page.getByRole('button', { name: 'New subscription' }).first().click();
  const form = page.getByRole('dialog', { name: 'New subscription' });
  await form.getByLabel('Application').fill('test-superuser');
  const url = `${receiver.url}/${randomUUID()}`;
  await form.getByLabel('Callback URL').fill(url);
  await form.getByRole('combobox', { name: 'Channel' }).fill(channel);
  await page.getByRole('option', { name: channel }).click();
  await form.getByRole('button', { name: 'Add a filter' }).click();
  await form.getByRole('textbox', { name: 'kind: Value' }).fill('permit');
  await expect(form.getByText('Would have matched 1 of 2 notifications')).toBeVisible();
  await form.getByLabel(/^Authorization header/).fill('Bearer of-the-receiver');
  await lookAt(page, 'new-subscription');
  await page.route('**/admin/v1/subscriptions', (route) => route.abort(), { times: 1 });
  await form.getByRole('button', { name: 'Create' }).click();
  await expect(form.getByText('It may have been done all the same.')).toBeVisible();
  receiver.next(answer(500));
  await form.getByRole('button', { name: 'Create' }).click();
  await expect(form.getByRole('alert')).toContainText('answers 500');
  await expect(form.getByLabel('Callback URL')).toHaveValue(url);
  // It arrives, and its answer is lost.
  await page.route('**/admin/v1/subscriptions', (route) => route.fetch().then(() => route.abort()), { times: 1 });
  await form.getByRole('button', { name: 'Create' }).click();
  await expect(form.getByText('It may have been done all the same.')).toBeVisible();
  await form.getByRole('button', { name: 'Create' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(url);
  await expect(page.getByText('kind: permit')).toBeVisible();
  const { body } = await heraut.api.call('GET', `/admin/v1/subscriptions?channel=${channel}`);
  expect((body as { count: number }).count).toBe(1);
});

test('a subscription is made for a receiver that wants a client certificate, of an authority of its own', async ({
  open,
  heraut,
}) => {
  const receiver = new StrictReceiver();
  const url = await receiver.start();
  const channel = await heraut.createChannel();
  const page = await open(`subscriptions?new=1&on=${channel}`);
  const form = page.getByRole('dialog', { name: 'New subscription' });
  await form.getByLabel('Application').fill('test-superuser');
  await form.getByLabel('Callback URL').fill(url);
  await form.getByLabel(/^Authorization header/).fill('Bearer of-the-receiver');
  await form.getByRole('button', { name: 'Create' }).click();
  await expect(form.getByRole('alert')).toContainText('The callback cannot be reached');
  await form.getByRole('button', { name: 'Client certificate, authority and headers' }).click();
  const [client] = clients;
  await form.getByLabel('Certificate (PEM)', { exact: true }).fill(client!.certificate);
  await form.getByLabel('Private key (PEM)').fill(client!.key);
  await form.getByLabel('Certificates of its authority (PEM)').fill(authority.certificate);
  await form.getByRole('button', { name: 'Add a header' }).click();
  await expect(form.getByRole('button', { name: 'Create' })).toBeDisabled();
  // The name that is missing cannot be folded away.
  await form.getByRole('button', { name: 'Client certificate, authority and headers' }).click();
  await expect(form.getByText('Give it a name, or remove it.')).toBeVisible();
  await expect(form.getByRole('textbox', { name: 'Name of header 1' })).toHaveAttribute('aria-invalid', 'true');
  await form.getByRole('textbox', { name: 'Name of header 1' }).fill('x-api-key');
  await form.getByLabel('Value of header 1').fill('secret-of-a-header');
  await lookAt(page, 'new-subscription-tls');
  await form.getByRole('button', { name: 'Create' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(url);
  const { body } = await admin(heraut, 'GET', `subscriptions?channel=${channel}`);
  expect(body).toMatchObject({
    subscriptions: [{ credentials: { tls: { certificate: expect.anything() }, headers: ['x-api-key'] } }],
  });
  expect(receiver.seen.map((call) => call.client)).toContain('one');
  receiver.stop();
});

test('a subscription is paused and resumed, what it holds is dropped, and it is deleted', async ({
  open,
  page,
  heraut,
  receiver,
}) => {
  await page.clock.install();
  const { id, url, channel } = await subscribe(heraut, receiver.url);
  await open(`subscriptions/${id}`);
  await expect(page.getByText('Nothing holds it up')).toBeVisible();
  await page.getByRole('button', { name: 'Pause' }).click();
  await notice(page, 'Paused:').getByRole('button', { name: 'Undo' }).click();
  await expect(page.getByRole('button', { name: 'Pause' })).toBeVisible();
  // The page shows the pause before the server has answered.
  const paused = page.waitForResponse((response) => response.url().endsWith('/pause'));
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(page.getByText('An operator paused it')).toBeVisible();
  expect((await paused).status()).toBe(200);
  await heraut.publish(channel);
  await heraut.publish(channel);
  await asTimePasses(page, () => expect(figure(page, 'Held')).toHaveText('2', atOnce));
  await expect(page.getByText('The subscription is paused.')).toBeVisible();
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menuitem', { name: 'Drop what is held' }).click();
  const drop = page.getByRole('dialog', { name: 'Drop 2 held deliveries?' });
  await lookAt(page, 'subscription-drop');
  await drop.getByRole('button', { name: 'Drop 2' }).click();
  await asTimePasses(page, () => expect(figure(page, 'Held')).toHaveText('0', atOnce));
  await page.getByRole('button', { name: 'Resume' }).click();
  await asTimePasses(page, () => expect(page.getByText('Nothing holds it up')).toBeVisible(atOnce));
  const more = page.getByRole('button', { name: 'More actions' });
  await more.click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await expect(page.getByRole('dialog')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  // Where the keyboard goes on: the item of the menu is gone.
  await expect(more).toBeFocused();
  await more.click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await expect(page).toHaveURL(/\/console\/subscriptions$/);
  await page.goto(`${heraut.api.url}/console/subscriptions/${id}`);
  await expect(page.getByRole('heading', { name: 'There is no such subscription' })).toBeVisible();
  expect(url).toBeTruthy();
});

test('a subscription is deleted as it was seen, and takes nobody from a page that was opened meanwhile', async ({
  open,
  heraut,
  receiver,
}) => {
  const [{ id, url }, other] = [await subscribe(heraut, receiver.url), await subscribe(heraut, receiver.url)];
  const page = await open(`subscriptions/${other.id}?tab=delivery`);
  await page.keyboard.press('Control+K');
  await page.keyboard.type(id);
  await page.getByRole('dialog', { name: 'Go to' }).getByRole('option').first().click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(url);
  const changed = new Promise<() => void>((resolve) => {
    void page.route('**/pause', (route) => resolve(() => void route.continue()));
  });
  // Not by what was known of it before a change of one's own …
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(page.getByText('An operator paused it')).toBeVisible();
  await page.getByRole('button', { name: 'More actions' }).click();
  const remove = page.getByRole('menuitem', { name: 'Delete' });
  await expect(remove).toBeDisabled();
  (await changed)();
  await expect(remove).toBeEnabled();
  await remove.click();
  const asked = page.getByRole('dialog', { name: 'Delete this subscription?' });
  // … nor over what somebody else has changed since, before that is shown.
  await admin(heraut, 'PATCH', `subscriptions/${id}`, { ratePerSecond: 7 });
  await asked.getByRole('button', { name: 'Delete' }).click();
  await expect(asked.getByRole('alert').getByRole('row').filter({ hasText: 'ratePerSecond' })).toContainText('7');
  const deleted = new Promise<() => void>((resolve) => {
    const isDeletion = (route: Route) => route.request().method() === 'DELETE';
    void page.route(`**/subscriptions/${id}`, (route) =>
      isDeletion(route) ? resolve(() => void route.continue()) : route.fallback(),
    );
  });
  await asked.getByRole('button', { name: 'Delete' }).click();
  const goesOn = await deleted;
  await page.goBack();
  const leaving = page.getByRole('dialog', { name: 'Leave before it is done?' });
  await leaving.getByRole('button', { name: 'Leave', exact: true }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(other.url);
  await page.getByLabel('Calls a second').pressSequentially('5');
  goesOn();
  await expect(notice(page, 'The subscription is deleted')).toBeVisible();
  await tab(page, 'Overview');
  await page.getByRole('dialog', { name: 'Leave without saving?' }).getByRole('button', { name: 'Stay' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(other.url);
  await expect(page.getByLabel('Calls a second')).toHaveValue('5');
});

test('a test notification shows what the receiver answers now', async ({ open, heraut, receiver }) => {
  const { id } = await subscribe(heraut, receiver.url);
  const page = await open(`subscriptions/${id}`);
  await page.getByRole('button', { name: 'Send a test' }).click();
  const dialog = page.getByRole('dialog', { name: 'Send a test notification' });
  const evil = '<script>document.title = "executed"</script>';
  receiver.next(answer(500, { server: 'of-a-test' }, `Out of order ${evil}`));
  await dialog.getByRole('button', { name: 'Send', exact: true }).click();
  await expect(dialog.getByText('The receiver answered 500')).toBeVisible();
  await expect(dialog.getByText('server: of-a-test')).toBeVisible();
  await expect(dialog.getByText(`Out of order ${evil}`)).toBeVisible();
  await lookAt(page, 'subscription-test');
  await dialog.getByRole('button', { name: 'Send again' }).click();
  await expect(dialog.getByText('The receiver accepted it: 204')).toBeVisible();
  await expect(page).toHaveTitle(/Heraut$/);
});

test('filters are edited with what they would have matched; nothing typed is lost, and nobody overwritten', async ({
  open,
  heraut,
  receiver,
}) => {
  const { id, channel } = await subscribe(heraut, receiver.url);
  for (const kind of ['a', 'b', 'b']) await heraut.publish(channel, { kenmerken: { kind, region: 'north' } });
  const page = await open(`subscriptions/${id}?tab=filters`);
  await expect(page.getByText('Would have matched 3 of 3 notifications')).toBeVisible();
  await page.getByRole('button', { name: 'Add a filter' }).click();
  await page.getByRole('textbox', { name: 'kind: Value' }).fill('b');
  await expect(page.getByText('Would have matched 2 of 3 notifications')).toBeVisible();
  await expect(page.getByRole('table', { name: 'The newest of them' }).getByRole('row')).toHaveCount(3);
  await lookAt(page, 'subscription-filters');
  // Leaving asks first.
  await tab(page, 'Overview');
  await page.getByRole('dialog', { name: 'Leave without saving?' }).getByRole('button', { name: 'Stay' }).click();
  await expect(page.getByRole('textbox', { name: 'kind: Value' })).toHaveValue('b');
  // A change by somebody else beside it does not matter; one of the same part does.
  await admin(heraut, 'PATCH', `subscriptions/${id}`, { ratePerSecond: 1000 });
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(notice(page, 'The filters are saved')).toBeVisible();
  await page.getByRole('textbox', { name: 'kind: Value' }).fill('mine');
  await admin(heraut, 'PATCH', `subscriptions/${id}`, { channels: [{ channel, filters: { region: 'theirs' } }] });
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByText('Somebody else changed this meanwhile')).toBeVisible();
  await expect(page.getByRole('textbox', { name: 'kind: Value' })).toHaveValue('mine');
  await lookAt(page, 'subscription-changed-meanwhile');
  await page.getByRole('button', { name: 'Load their version' }).click();
  await expect(page.getByRole('textbox', { name: 'region: Value' })).toHaveValue('theirs');
  await page.getByRole('textbox', { name: 'region: Value' }).fill('mine');
  await admin(heraut, 'PATCH', `subscriptions/${id}`, { channels: [{ channel, filters: { region: 'again' } }] });
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('button', { name: 'Save mine over it' }).click();
  // The notice of the first time may still be there.
  const saved = async () => (await admin(heraut, 'GET', `subscriptions/${id}`)).body;
  await expect.poll(saved).toMatchObject({ ratePerSecond: 1000, channels: [{ channel, filters: { region: 'mine' } }] });
  // Somebody deletes it: that is said, and what was typed is still there.
  await page.getByRole('textbox', { name: 'region: Value' }).fill('typed for an hour');
  await admin(heraut, 'DELETE', `subscriptions/${id}`);
  await expect(page.getByText('This subscription was deleted meanwhile')).toBeVisible();
  await expect(page.getByRole('textbox', { name: 'region: Value' })).toHaveValue('typed for an hour');
  await expect(page.getByRole('button', { name: 'Save', exact: true })).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Pause' })).toHaveCount(0);
  await lookAt(page, 'subscription-deleted-meanwhile');
  await page.getByRole('link', { name: 'To the subscriptions' }).click();
  await page.getByRole('dialog', { name: 'Leave without saving?' }).getByRole('button', { name: 'Leave' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Subscriptions' })).toBeVisible();
});

test('a change of one’s own whose answer was lost is nobody else’s, and is saved', async ({
  open,
  heraut,
  receiver,
}) => {
  const { id } = await subscribe(heraut, receiver.url);
  const page = await open(`subscriptions/${id}?tab=filters`);
  for (const [name, value] of [
    ['kind', 'b'],
    ['region', 'north'],
  ] as const) {
    await page.getByRole('button', { name: 'Add a filter' }).click();
    await page.getByRole('textbox', { name: `${name}: Value` }).fill(value);
  }
  await page.route(
    `**/subscriptions/${id}`,
    (route) => (route.request().method() === 'PATCH' ? route.fetch().then(() => route.abort()) : route.fallback()),
    { times: 1 },
  );
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByRole('alert').filter({ hasText: 'Heraut does not answer' })).toBeVisible();
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(notice(page, 'The filters are saved')).toBeVisible();
  await expect(page.getByText('Somebody else changed this meanwhile')).toHaveCount(0);
});

test('how it is sent is changed; a callback that does not prove itself is not taken', async ({
  open,
  heraut,
  receiver,
}) => {
  const { id, url } = await subscribe(heraut, receiver.url);
  const page = await open(`subscriptions/${id}?tab=delivery`);
  // As it is typed: on the way there is a "0.", which is no number yet.
  await page.getByLabel('Calls a second').pressSequentially('0.5');
  await page.getByLabel('Callback URL').fill(`${url}/moved`);
  receiver.always(answer(403));
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByRole('alert')).toContainText('answers 403');
  await expect(page.getByLabel('Calls a second')).toHaveValue('0.5');
  receiver.always(protectedReceiver);
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(`${url}/moved`);
  const { body } = await admin(heraut, 'GET', `subscriptions/${id}`);
  expect(body).toMatchObject({ ratePerSecond: 0.5, callbackUrl: `${url}/moved` });
});

test('an order that is chosen is said to count for what is accepted from then on, not for what waits already', async ({
  open,
  heraut,
  receiver,
}) => {
  const { id } = await subscribe(heraut, receiver.url);
  const page = await open(`subscriptions/${id}?tab=delivery`);
  await page.getByRole('combobox', { name: 'Order' }).click();
  await page.getByRole('option', { name: /^Per object/ }).click();
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(notice(page, 'The order counts for notifications accepted from now on')).toBeVisible();
  const { body } = await admin(heraut, 'GET', `subscriptions/${id}`);
  expect(body).toMatchObject({ ordering: 'per-object' });
});

test('the schedule of retries follows what is typed, and a field that is emptied follows the general policy', async ({
  open,
  heraut,
  receiver,
}) => {
  const { id } = await subscribe(heraut, receiver.url);
  const page = await open(`subscriptions/${id}?tab=retries`);
  await expect(page.getByText('8 attempts over 23 h 55 m 25 s', { exact: true })).toBeVisible();
  await page.getByLabel('Attempts after the first').fill('3');
  await page.getByLabel('Random part').fill('0.5');
  await expect(page.getByText('4 attempts over 8 m 45 s', { exact: true })).toBeVisible();
  await expect(page.getByRole('img', { name: '4 attempts over 8 m 45 s' })).toBeVisible();
  await expect(page.getByRole('table', { name: 'The schedule' }).getByRole('row')).toHaveCount(5);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(notice(page, 'Saved.')).toBeVisible();
  const policy = async () => (await admin(heraut, 'GET', `subscriptions/${id}/retry-policy`)).body;
  expect(await policy()).toHaveProperty('overrides', { maxRetries: 3, jitter: 0.5 });
  await page.getByLabel('Random part').fill('');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect.poll(policy).toHaveProperty('overrides', { maxRetries: 3 });
  await page.getByRole('button', { name: 'Follow the general policy in everything' }).click();
  const ask = page.getByRole('dialog', { name: 'Follow the general policy?' });
  const follow = ask.getByRole('button', { name: 'Follow the general policy in everything' });
  // Somebody else changes it: that is shown, and confirmed over.
  await admin(heraut, 'PUT', `subscriptions/${id}/retry-policy`, { maxRetries: 5 });
  await follow.click();
  await expect(ask.getByRole('alert').getByRole('row').filter({ hasText: 'maxRetries' })).toContainText('5');
  await follow.click();
  await expect(page.getByText('8 attempts over 23 h 55 m 25 s', { exact: true })).toBeVisible();
});

test('credentials are replaced and removed, and never shown', async ({ open, heraut, receiver }) => {
  const { id } = await subscribe(heraut, receiver.url);
  const page = await open(`subscriptions/${id}?tab=credentials`);
  const part = (name: string) => page.getByRole('group', { name });
  await part('Headers of its own').getByText('Replace').click();
  await page.getByRole('textbox', { name: 'Name of header 1' }).fill('x-api-key');
  await page.getByLabel('Value of header 1').fill('secret-of-a-header');
  await part('Authorization').getByText('Replace').click();
  await page.getByLabel(/^Authorization header/).fill('Bearer new');
  await lookAt(page, 'subscription-credentials');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByText('Now: x-api-key.')).toBeVisible();
  await expect(page.getByLabel(/^Authorization header/)).toBeHidden();
  expect(await page.content()).not.toContain('secret-of-a-header');
  await admin(heraut, 'POST', `subscriptions/${id}/test`);
  expect(receiver.requests.at(-1)?.headers).toMatchObject({
    authorization: 'Bearer new',
    'x-api-key': 'secret-of-a-header',
  });
  await part('Headers of its own').getByText('Remove').click();
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByText('Now: none.')).toBeVisible();
  // The secret that somebody else set is not shown; that they changed something is.
  await part('Authorization').getByText('Replace').click();
  await page.getByLabel(/^Authorization header/).fill('Bearer mine');
  // Nor can it be told whether a change of one's own came alone.
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(page.getByText('This was changed since you began to type')).toBeVisible();
  await expect(page.getByText('Somebody else changed this meanwhile')).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Load their version' })).toHaveCount(0);
  await lookAt(page, 'subscription-credentials-changed');
  await page.getByRole('button', { name: 'Save mine over it' }).click();
  await expect(page.getByLabel(/^Authorization header/)).toBeHidden();
  await part('Authorization').getByText('Replace').click();
  await page.getByLabel(/^Authorization header/).fill('Bearer mine');
  await admin(heraut, 'PATCH', `subscriptions/${id}/credentials`, {
    authorization: { kind: 'verbatim', auth: 'Bearer theirs' },
  });
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByText('This was changed since you began to type')).toBeVisible();
  await expect(page.getByLabel(/^Authorization header/)).toHaveValue('Bearer mine');
  await page.getByRole('button', { name: 'Save mine over it' }).click();
  await expect(page.getByLabel(/^Authorization header/)).toBeHidden();
  await admin(heraut, 'POST', `subscriptions/${id}/test`);
  expect(receiver.requests.at(-1)?.headers).toMatchObject({ authorization: 'Bearer mine' });
});

test('a new client secret leaves the rest of an authorization as it was; certificates go only where that is said', async ({
  open,
  heraut,
  receiver,
}) => {
  const { id } = await subscribe(heraut, receiver.url);
  const oauth2 = { kind: 'oauth2', tokenUrl: 'https://login.example.com/token', clientId: 'heraut', scope: 'write' };
  const { body } = await admin(heraut, 'PATCH', `subscriptions/${id}/credentials`, {
    authorization: {
      ...oauth2,
      clientSecret: 'old',
      clientAuthentication: 'body',
      tokenTls: { authority: authority.certificate },
    },
  });
  const { credentials } = body as { credentials: object };
  const page = await open(`subscriptions/${id}?tab=credentials`);
  const part = page.getByRole('group', { name: 'Authorization' });
  const save = page.getByRole('button', { name: 'Save', exact: true });
  const stored = async () => (await admin(heraut, 'GET', `subscriptions/${id}`)).body;
  await expect(part).toContainText('Towards the token endpoint: CN=authority of the test.');
  await part.getByText('Replace').click();
  await expect(part.getByLabel('Token endpoint')).toHaveValue(oauth2.tokenUrl);
  await part.getByLabel(/^Client secret/).fill('new');
  const mayGo = part.getByRole('checkbox', { name: 'Remove those not given again: CN=authority of the test' });
  await expect(mayGo).not.toBeChecked();
  await expect(save).toBeDisabled();
  await mayGo.scrollIntoViewIfNeeded();
  await lookAt(page, 'subscription-credentials-oauth2');
  await part.getByLabel('Certificates of its authority (PEM)').fill(authority.certificate);
  await expect(mayGo).toHaveCount(0);
  await save.click();
  await expect(part.getByLabel(/^Client secret/)).toHaveCount(0);
  expect(await stored()).toMatchObject({ credentials });
  await part.getByText('Replace').click();
  await part.getByLabel(/^Client secret/).fill('newer');
  await mayGo.check();
  await save.click();
  await expect(part.getByLabel(/^Client secret/)).toHaveCount(0);
  expect(await stored()).toMatchObject({ credentials: { ...credentials, tokenTls: null } });
});

test('signing keys are made, rotated and ended; a secret is shown once', async ({ open, heraut, receiver }) => {
  const { id } = await subscribe(heraut, receiver.url);
  const page = await open(`subscriptions/${id}?tab=signing`);
  await page.getByRole('button', { name: 'Make a key' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Make', exact: true }).click();
  const shown = page.getByRole('dialog', { name: 'Copy this secret now' });
  await expect(shown.getByText(/^whsec_/)).toBeVisible();
  const secret = (await shown.getByText(/^whsec_/).textContent())!;
  await lookAt(page, 'subscription-secret');
  // To copy it, and to say that one has: nothing else takes it away.
  await expect(shown.getByRole('button')).toHaveCount(2);
  await page.keyboard.press('Escape');
  await shown.getByRole('button', { name: 'I have copied it' }).click();
  const keys = page.getByRole('table', { name: 'Signing keys' }).getByRole('row');
  await expect(keys).toHaveCount(2);
  expect(await page.content()).not.toContain(secret);
  await lookAt(page, 'subscription-signing');
  await page.getByRole('button', { name: 'Rotate' }).click();
  const key = (await keys.nth(1).getByRole('cell').first().innerText()).replace(/\s+/, ' ');
  const asked = page.getByRole('dialog', { name: `Rotate the key ${key}?` });
  const rotate = asked.getByRole('button', { name: 'Rotate', exact: true });
  // The answer is lost, and with it the secret of a key that signs already.
  await page.route('**/rotate', (route) => route.fetch().then(() => route.abort()), { times: 1 });
  await rotate.click();
  await expect(asked).toContainText('nobody has seen the secret of that key');
  await expect(asked).toContainText('may have been carried out, or not');
  await expect(rotate).toBeDisabled();
  await lookAt(page, 'subscription-key-unseen');
  await asked.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Rotate' }).click();
  // The one that signs now is another.
  const askedAgain = page.getByRole('dialog', { name: /^Rotate the key v1 [0-9a-f-]{36}\?$/ });
  await expect(askedAgain).toBeVisible();
  await expect(askedAgain).not.toContainText(key);
  await expect(askedAgain).not.toContainText('nobody has seen');
  await askedAgain.getByRole('button', { name: 'Rotate', exact: true }).click();
  await shown.getByRole('button', { name: 'I have copied it' }).click();
  await expect(keys).toHaveCount(4);
  await expect(keys.nth(2)).toContainText(/:\d\d [AP]M UTC \(in \d+ (hours|day)/);
  for (const left of [3, 2, 1]) {
    const last = (await keys.last().getByRole('code').innerText()).trim();
    await page.getByRole('button', { name: 'End' }).last().click();
    const ending = page.getByRole('dialog', { name: `End the key v1 ${last}?` });
    await ending.getByRole('button', { name: 'End', exact: true }).click();
    if (left > 1) await expect(keys).toHaveCount(left);
  }
  await expect(page.getByRole('heading', { name: 'Deliveries are not signed' })).toBeVisible();
});

test('a second press in a dialog that fades away does nothing', async ({ open, page, heraut, receiver }) => {
  const { id } = await subscribe(heraut, receiver.url);
  for (const scheme of ['v1', 'v1a'])
    await heraut.api.call('POST', `/admin/v1/subscriptions/${id}/signing-keys`, { body: { scheme } });
  await page.emulateMedia({ reducedMotion: 'no-preference' });
  await open(`subscriptions/${id}?tab=signing`);
  let ended = 0;
  await page.route('**/signing-keys/*', (route) => {
    ended += 1;
    return route.fallback();
  });
  const keys = page.getByRole('table', { name: 'Signing keys' }).getByRole('row');
  await keys.last().getByRole('button', { name: 'End' }).click();
  const dialog = page.getByRole('dialog', { name: /^End the key/ });
  await expect(dialog.getByRole('button', { name: 'End', exact: true })).toBeVisible();
  // Only now, for its opening goes by the clock as well; its closing does not come to its end.
  await page.clock.install();
  await page.clock.pauseAt(await page.evaluate(() => Date.now() + 60_000));
  const press = () => dialog.locator('form').evaluate((form: HTMLFormElement) => form.requestSubmit());
  await press();
  await expect(page.getByText('The key is ended.')).toBeAttached();
  await press();
  expect(ended).toBe(1);
  await page.clock.resume();
  await expect(dialog).toHaveCount(0);
  await expect(keys).toHaveCount(2);
  expect(ended).toBe(1);
});

test('a parked endpoint and a disabled subscription are set going again', async ({ open, page, heraut, receiver }) => {
  await page.clock.install();
  const { id, channel } = await subscribe(heraut, receiver.url);
  receiver.always(answer(503));
  for (let nr = 0; nr < 12; nr++) await heraut.publish(channel);
  await open(`subscriptions/${id}`);
  await asTimePasses(page, () => expect(page.getByText(/ is parked since /)).toBeVisible(atOnce));
  await expect(page.getByRole('heading', { name: 'Last failure' }).locator('..')).toContainText('HTTP 503');
  await lookAt(page, 'subscription-parked');
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menuitem', { name: 'Reset the circuit breaker' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Reset', exact: true }).click();
  await expect(notice(page, 'The circuit breaker is closed')).toBeVisible();
  receiver.always(protectedReceiver);
  await asTimePasses(page, () => expect(page.getByText('Nothing holds it up')).toBeVisible(atOnce));
  receiver.next(answer(410));
  await heraut.publish(channel);
  await asTimePasses(page, () => expect(page.getByText(/^Its receiver answered 410 Gone/)).toBeVisible(atOnce));
  await page.getByRole('button', { name: 'Enable' }).click();
  // The button has gone.
  await expect(page.getByRole('button', { name: 'Pause', exact: true })).toBeFocused();
  await asTimePasses(page, () => expect(page.getByText('Nothing holds it up')).toBeVisible(atOnce));
});
