import type { Route } from '@playwright/test';
import type { Installation } from '../../test/support/installation.js';
import { eventually } from '../../test/support/eventually.js';
import { answer, protectedReceiver, Receiver } from '../../test/support/receiver.js';
import { asTimePasses, expect, lookAt, test } from './harness.js';

test('a notification is followed, retried, cancelled and sent again where it stands', async ({
  open,
  heraut,
  receiver,
}) => {
  const channel = await heraut.createChannel(['kind']);
  const subscription = await heraut.subscribe({ channel, url: receiver.url });
  // A failed one waits for the buttons: by itself it would be sent again after 25 s.
  const path = `/admin/v1/subscriptions/${subscription}/retry-policy`;
  await heraut.api.call('PUT', path, { body: { backoffFactor: 600 } });
  receiver.next(answer(503, { server: 'nginx' }, '{"detail":"down for maintenance"}'));
  const { id } = await heraut.publish(channel, { resource: 'permit', kenmerken: { kind: 'a' } });
  const page = await open(`notifications/${id}`);
  await expect(page.getByRole('heading', { level: 1, name: 'create permit' })).toBeVisible();
  const attempt = page.getByRole('region', { name: 'Attempt 1' });
  await expect(attempt).toContainText('HTTP 503');
  await expect(attempt.getByLabel('Body of the answer')).toBeVisible();
  await expect(attempt.getByText('nginx')).toBeVisible();
  // Also the exact time, which a pointer is not needed for, and its zone.
  await expect(attempt).toContainText(/:\d\d [AP]M UTC \(/);
  await attempt.getByText('Request headers').click();
  await expect(attempt.getByText('They are not kept')).toBeVisible();
  await lookAt(page, 'notification');

  await page.getByRole('button', { name: 'Try now' }).click();
  await expect(page.getByRole('region', { name: 'Attempt 2' })).toContainText('HTTP 204');
  await expect(page.getByRole('button', { name: 'Try now' })).toBeHidden();

  const got = () => receiver.notifications.filter(({ headers }) => headers['webhook-id'] === id).length;
  const before = got();
  await page.getByRole('button', { name: 'Send again' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox').fill('lost at their side');
  await dialog.getByRole('button', { name: 'Send it' }).click();
  await expect(dialog.getByText('1 of 1 sent')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('region', { name: 'Attempt 3' })).toContainText('HTTP 204');
  expect(got()).toBe(before + 1);

  await page.getByRole('tab', { name: 'Story' }).click();
  await expect(page.getByText('Attempt 1 answered with HTTP 503')).toBeVisible();
  await expect(page.getByText('Delivered', { exact: true })).toBeVisible();
  await page.getByRole('tab', { name: 'Body' }).click();
  await expect(page).toHaveURL(/tab=body/);
  await expect(page.getByText('"hoofdObject"')).toBeVisible();

  receiver.next(answer(500));
  const second = await heraut.publish(channel);
  await page.goto(page.url().replace(id, second.id).replace('tab=body', ''));
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel this delivery' }).click();
  await expect(page.getByRole('list', { name: 'Deliveries' }).getByText('cancelled')).toBeVisible();
});

async function publishToOne(heraut: Installation, receiver: Receiver): Promise<string> {
  const channel = await heraut.createChannel();
  await heraut.subscribe({ channel, url: receiver.url });
  return (await heraut.publish(channel)).id;
}

/** The answer as if its deliveries were under way, and had been tried so often. */
async function answerWithTries(route: Route, attemptCount: number): Promise<void> {
  const response = await route.fetch();
  const json = (await response.json()) as { deliveries: object[] };
  const deliveries = json.deliveries.map((each) => ({ ...each, state: 'sending', attemptCount }));
  await route.fulfill({ response, json: { ...json, deliveries } });
}

test('a notification that changes while all of it is read is read to the end, and then again', async ({
  open,
  heraut,
  receiver,
  page,
}) => {
  const id = await publishToOne(heraut, receiver);
  let [changes, begun, looks, underWay] = [0, 0, 0, 0];
  let isOver = false;
  let goOn!: () => void;
  const held = new Promise<void>((resolve) => (goOn = resolve));
  let lookOn!: () => void;
  const isReadAgain = new Promise<void>((resolve) => (lookOn = resolve));
  await page.route('**/admin/v1/deliveries?notification=*', async (route) => {
    if (isOver) await isReadAgain;
    underWay++;
    await answerWithTries(route, isOver ? changes : ++changes);
    underWay--;
    looks++;
  });
  await page.route(`**/admin/v1/notifications/${id}`, async (route) => {
    const nth = ++begun;
    if (nth === 2) await held;
    // The second answer is as old as the first, and the third newer than every look.
    await answerWithTries(route, nth <= 2 ? 0 : nth === 3 ? ++changes : changes);
    if (nth === 3) lookOn();
  });
  await open(`notifications/${id}`);
  await expect.poll(() => begun).toBe(2);
  const before = changes;
  await expect.poll(() => changes).toBeGreaterThan(before + 2);
  expect(begun).toBe(2);
  isOver = true;
  await expect.poll(() => underWay).toBe(0);
  goOn();
  await expect.poll(() => begun).toBeGreaterThan(2);
  const seen = looks;
  await expect.poll(() => looks).toBeGreaterThan(seen + 1);
  expect(begun).toBe(3);
});

test('a notification of which a part is read says so, goes on, and is not read over and over', async ({
  open,
  heraut,
  receiver,
  page,
}) => {
  const channel = await heraut.createChannel();
  for (let n = 0; n < 3; n++) await heraut.subscribe({ channel, url: receiver.url });
  const { id } = await heraut.publish(channel);
  const deliveries = async () => {
    const { body } = await heraut.api.call('GET', `/admin/v1/notifications/${id}`);
    return (body as { deliveries: { state: string }[] }).deliveries;
  };
  await eventually(async () => (await deliveries()).every(({ state }) => state === 'delivered'), 'all to arrive');
  let [reads, looks] = [0, 0];
  await page.clock.install();
  await page.route('**/admin/v1/deliveries?*', (route) => {
    looks += 1;
    return route.continue();
  });
  const whole = new RegExp(String.raw`/admin/v1/notifications/${id}(?:\?.*)?$`);
  // As where what receivers answered fills a page.
  await page.route(whole, (route) => {
    const url = new URL(route.request().url());
    url.searchParams.set('limit', '1');
    reads += 1;
    return route.continue({ url: url.href });
  });
  await open(`notifications/${id}`);
  const rows = page.getByRole('list', { name: 'Deliveries' }).getByRole('listitem');
  await expect(rows).toHaveCount(1);
  await expect(page.getByText('of the 1 shown')).toBeVisible();
  // It looks whether they have changed, again and again: they have not.
  await asTimePasses(page, async () => expect(looks).toBeGreaterThanOrEqual(3));
  expect(reads).toBe(1);
  for (const count of [2, 3]) {
    await page.getByRole('button', { name: 'Show more' }).click();
    await expect(rows).toHaveCount(count);
  }
  await expect(page.getByText('of the 3 shown')).toBeHidden();
  await expect(page.getByRole('button', { name: 'Show more' })).toBeHidden();
});

test('why a subscription got a notification that changes meanwhile is read to the end, and then again', async ({
  open,
  heraut,
  receiver,
  page,
}) => {
  const id = await publishToOne(heraut, receiver);
  let [changes, read, begun] = [0, 0, 0];
  let goOn!: () => void;
  const held = new Promise<void>((resolve) => (goOn = resolve));
  await page.route('**/admin/v1/deliveries?notification=*', (route) => answerWithTries(route, ++changes));
  await page.route(`**/admin/v1/notifications/${id}`, async (route) => {
    await answerWithTries(route, changes);
    read += 1;
  });
  await page.route(`**/admin/v1/notifications/${id}/explanations?*`, async (route) => {
    if (++begun === 2) await held;
    await route.continue();
  });
  await open(`notifications/${id}?tab=explain`);
  await expect.poll(() => begun).toBe(2);
  const before = read;
  await expect.poll(() => read).toBeGreaterThan(before + 2);
  expect(begun).toBe(2);
  goOn();
  await expect.poll(() => begun).toBeGreaterThan(2);
});

test('no try is offered where it would only be held again', async ({ open, heraut, receiver }) => {
  const channel = await heraut.createChannel();
  const path = `/admin/v1/subscriptions/${await heraut.subscribe({ channel, url: receiver.url })}`;
  const subscription = path.split('/').at(-1)!;
  await heraut.api.call('PUT', `${path}/retry-policy`, { body: { backoffFactor: 600 } });
  await heraut.api.call('PATCH', path, { body: { ordering: 'per-object' } });
  receiver.next(answer(500));
  const first = await heraut.publish(channel);
  await heraut.becomes('waiting', first.id, subscription);
  const second = await heraut.publish(channel);
  await heraut.becomes('held', second.id, subscription);
  const page = await open(`notifications/${second.id}`);
  const deliveries = page.getByRole('list', { name: 'Deliveries' });
  const [tryNow, cancel] = ['Try now', 'Cancel'].map((name) => deliveries.getByRole('button', { name, exact: true }));
  await expect(deliveries.getByText('an earlier one about the same object goes first')).toBeVisible();
  await expect(cancel!).toBeVisible();
  await expect(tryNow!).toHaveCount(0);
  await open(`notifications/${first.id}`);
  await expect(tryNow!).toBeVisible();
  // The page that was read before the pause is told so, and the delivery stays as it is.
  await heraut.api.call('POST', `${path}/pause`);
  await tryNow!.click();
  await expect(deliveries.getByRole('alert')).toContainText('paused');
  await expect(tryNow!).toHaveCount(0);
  expect(await heraut.delivery(first.id, subscription)).toMatchObject({ state: 'waiting' });
});

test('a notification is sent again to all who missed it, and to nobody else', async ({ open, heraut, receiver }) => {
  const channel = await heraut.createChannel();
  const failing = await Receiver.start();
  const missing: string[] = [];
  for (const path of ['one', 'other']) {
    const id = await heraut.subscribe({ channel, url: `${failing.url}/${path}` });
    await heraut.api.call('PUT', `/admin/v1/subscriptions/${id}/retry-policy`, { body: { maxRetries: 0 } });
    missing.push(id);
  }
  const well = await heraut.subscribe({ channel, url: receiver.url });
  failing.always(answer(500));
  // Of another notification that they missed, too, nothing is sent.
  const { id: other } = await heraut.publish(channel);
  const { id } = await heraut.publish(channel);
  for (const subscription of missing)
    for (const each of [other, id]) await heraut.becomes('failed', each, subscription);
  await heraut.becomes('delivered', id, well);
  failing.always(protectedReceiver);
  const arrived = () => receiver.notifications.filter(({ headers }) => headers['webhook-id'] === id).length;
  const before = arrived();
  const page = await open(`notifications/${id}`);
  await lookAt(page, 'notification-missed');
  await page.getByRole('link', { name: 'Send again to all who missed it' }).click();
  await expect(page.getByRole('textbox', { name: 'Notification' })).toHaveValue(id);
  const result = page.getByRole('region', { name: 'Result of the count' });
  await expect(result.getByText('2 deliveries of 1 notification are meant.')).toBeVisible();
  await result.getByRole('button', { name: 'Send 2 again' }).click();
  await expect(page.getByText('2 of 2')).toBeVisible();
  for (const subscription of missing) await heraut.becomes('delivered', id, subscription);
  expect(arrived()).toBe(before);
  expect((await heraut.delivery(other, missing[0]!)).state).toBe('failed');
  await page.getByRole('main').getByRole('link', { name: id }).click();
  await expect(page.getByRole('list', { name: 'Deliveries' }).getByText('delivered', { exact: true })).toHaveCount(3);
  await expect(page.getByRole('link', { name: 'Send again to all who missed it' })).toHaveCount(0);
  await failing.stop();
});

test('it says which name of which group kept it away, and sends it once the filter is mended', async ({
  open,
  heraut,
  receiver,
}) => {
  const channel = await heraut.createChannel(['kind']);
  const kanalen = (kind: string) => [{ naam: channel, filters: { kind } }];
  const wrong = await heraut.subscribe({ channel, url: `${receiver.url}/wrong`, kanalen: kanalen('permits') });
  const { id } = await heraut.publish(channel, { kenmerken: { kind: 'permit' } });
  const page = await open(`notifications/${id}`);
  await page.getByRole('button', { name: 'Why not?' }).click();
  const judgement = page.getByRole('region', { name: `${receiver.url}/wrong` });
  await expect(judgement.getByRole('row', { name: 'kind permits permit different' })).toBeVisible();
  await lookAt(page, 'notification-explain');
  const speak = async (language: string) => {
    await page.evaluate((chosen) => localStorage.setItem('heraut-language', chosen), language);
    await page.reload();
  };
  await expect(judgement).toContainText(
    'No entry about this channel fits: entry 1 asks for kind “permits”, and it is “permit”.',
  );
  await speak('nl');
  await expect(judgement).toContainText(
    'Geen regel over dit kanaal past: regel 1 vraagt kind “permits”, en het is “permit”.',
  );
  await speak('en');
  await judgement.getByRole('button', { name: 'Send it to this one' }).click();
  await expect(page.getByRole('dialog').getByText('Correct its filters first')).toBeVisible();
  await page.keyboard.press('Escape');

  const body = { kanalen: kanalen('permit') };
  expect((await heraut.api.call('PATCH', `/api/v1/abonnement/${wrong}`, { body })).status).toBe(200);
  // Explanations asked for before the page knew of the delivery come after it does, and know nothing of it.
  const explanations = /\/explanations\?/;
  const [read] = await Promise.all([page.waitForResponse(explanations), page.reload()]);
  const beforeSending = await read.text();
  let isKnown = false;
  const asked: (() => Promise<void>)[] = [];
  await page.route(new RegExp(`/admin/v1/notifications/${id}$`), async (route) => {
    const response = await route.fetch();
    isKnown ||= (await response.text()).includes('"delivered"');
    await route.fulfill({ response });
    if (isKnown) for (const answer of asked.splice(0)) await answer();
  });
  await page.route(explanations, async (route) => {
    if (isKnown) return route.continue();
    asked.push(() => route.fulfill({ contentType: 'application/json', body: beforeSending }));
  });
  await judgement.getByRole('button', { name: 'Send it to this one' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Send it' }).click();
  await expect(page.getByRole('dialog').getByText('1 of 1 sent')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(judgement.getByText('delivered', { exact: true })).toBeVisible();

  await page.getByRole('combobox', { name: 'Ask about one subscription' }).fill(`${receiver.url}/wrong`);
  await page.getByRole('option').first().click();
  await expect(page).toHaveURL(new RegExp(`subscription=${wrong}`));
  await page.goto(page.url().replace(id, '00000000-0000-7000-8000-000000000000'));
  await expect(page.getByRole('heading', { name: 'There is no such notification' })).toBeVisible();
});

test('a characteristic leads to the notifications that have it, also where its name has colons', async ({
  open,
  heraut,
}) => {
  const channel = await heraut.createChannel([]);
  const { id } = await heraut.publish(channel, { kenmerken: { 'urn:nl:zaak': channel, ['n'.repeat(9000)]: 'x' } });
  const page = await open(`notifications/${id}`);
  await expect(page.getByText('n'.repeat(200))).toBeVisible();
  await expect(page.getByRole('link', { name: 'n'.repeat(200) })).toHaveCount(0);
  await page.getByRole('link', { name: `urn:nl:zaak: ${channel}` }).click();
  await expect(page).toHaveURL(/notifications\?characteristic=/);
  await expect(page.locator(`a[href*="${id}"]`).first()).toBeVisible();
});

test('what a publisher or a receiver writes is shown and never executed, a megabyte of it too', async ({
  open,
  heraut,
  receiver,
}) => {
  const script = '<script>document.title = "executed"</script><img src=x onerror="document.title=`executed`">';
  const rightToLeft = 'مرحبا بالعالم';
  const channel = await heraut.createChannel();
  await heraut.subscribe({ channel, url: receiver.url });
  receiver.next(answer(400, { 'x-note': 'a' }, script));
  const kenmerken = Object.fromEntries(
    Array.from({ length: 1000 }, (_, index) => [
      `name${index}`,
      index === 0 ? script : `${rightToLeft} ${'x'.repeat(900)}`,
    ]),
  );
  const fields = { resource: script.slice(0, 100), actie: rightToLeft, kenmerken };
  const { id } = await heraut.publish(channel, fields);
  const page = await open(`notifications/${id}`);
  await expect(page.getByRole('heading', { level: 1 })).toContainText(`${rightToLeft} <script>`);
  await expect(page.getByRole('region', { name: 'Attempt 1' }).locator('pre')).toContainText(script);
  await page.getByRole('button', { name: 'Show all 1,000' }).click();
  await page.getByRole('textbox', { name: 'Search in 1,000 characteristics' }).fill('name999');
  await expect(page.getByRole('cell', { name: 'name999' })).toBeVisible();
  await page.getByRole('tab', { name: 'Body' }).click();
  await expect(page.getByLabel('Body', { exact: true }).last()).toContainText('<script>document.title');
  await expect(page.getByText(/The first 100 kB of/)).toBeVisible();
  await lookAt(page, 'notification-hostile');
  await page.getByRole('button', { name: 'Show all of it' }).click();
  await expect(page.locator('pre')).toContainText('name999');
  await page.getByText('As sent').click();
  await expect(page).toHaveURL(/as=sent/);
  await page.getByRole('tab', { name: 'Story' }).click();
  await expect(page.getByText('Attempt 1 answered with HTTP 400')).toBeVisible();
  expect(await page.title()).not.toBe('executed');
});
