import type { Page, Route } from '@playwright/test';
import { randomUUID } from 'node:crypto';
import type { Installation } from '../../test/support/installation.js';
import { asTimePasses, atOnce, auditEntry, expect, retype, signIn, test } from './harness.js';

const fault = { status: 500, json: { status: 500, code: 'error', title: 'Internal error', detail: 'Of this test' } };
const unavailable = (detail: string) => ({
  status: 503,
  json: { status: 503, code: 'service_unavailable', title: 'Not available', detail },
});
const comeBackTo = (page: Page) => page.evaluate(() => void dispatchEvent(new Event('visibilitychange')));
const endSession = (page: Page, url: string) =>
  page.request.delete(`${url}/console/session`, { headers: { 'X-Heraut-Console': '1' } });
const palette = (page: Page) => page.getByRole('dialog', { name: 'Go to' });
const days = (page: Page) => page.getByLabel('Days that texts are kept');

async function idOf(heraut: Installation, name: string): Promise<string> {
  const { body } = await heraut.api.call('GET', '/admin/v1/channels');
  return (body as { channels: { id: string; name: string }[] }).channels.find((each) => each.name === name)!.id;
}

/** @returns the kind of the question of the browser, which was answered with no */
const refuseToLeave = async (page: Page): Promise<string> => {
  const dialog = await page.waitForEvent('dialog');
  await dialog.dismiss();
  return dialog.type();
};

const refusedReload = async (page: Page): Promise<string> =>
  (await Promise.all([refuseToLeave(page), page.evaluate(() => location.reload())]))[0];

test('what calls the server of somebody else is waited for as long as that may take, and its outcome is shown', async ({
  open,
  page,
  heraut,
  receiver,
}) => {
  const waitedFor = async (method: string, path: string, begin: () => Promise<void>) => {
    const asked = new Promise<Route>((resolve) => {
      void page.route(`**/admin/v1/${path}`, (route) => {
        if (route.request().method() === method) resolve(route);
        else void route.fallback();
      });
    });
    await begin();
    const route = await asked;
    const response = await route.fetch();
    await page.clock.fastForward(100_000);
    await route.fulfill({ response });
    await page.unroute(`**/admin/v1/${path}`);
  };
  const save = page.getByRole('button', { name: 'Save', exact: true });

  const channel = await heraut.createChannel();
  const url = `${receiver.url}/${randomUUID()}`;
  await open('subscriptions');
  await page.getByRole('button', { name: 'New subscription' }).first().click();
  const form = page.getByRole('dialog', { name: 'New subscription' });
  await form.getByLabel('Application').fill('test-superuser');
  await form.getByLabel('Callback URL').fill(url);
  await form.getByRole('combobox', { name: 'Channel' }).fill(channel);
  await page.getByRole('option', { name: channel }).click();
  await form.getByLabel(/^Authorization header/).fill('Bearer of-the-receiver');
  await page.clock.install(); // only now: what opens and closes while the form is filled goes by timers
  await waitedFor('POST', 'subscriptions', () => form.getByRole('button', { name: 'Create' }).click());
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(url);

  const id = new URL(page.url()).pathname.split('/').at(-1)!;
  await open(`subscriptions/${id}?tab=delivery`);
  await page.getByLabel('Callback URL').fill(`${url}/moved`);
  await waitedFor('PATCH', `subscriptions/${id}`, () => save.click());
  await expect(page.getByRole('alert').filter({ hasText: 'Saved' })).toBeVisible();

  await open('alerts');
  await page.getByRole('button', { name: 'Send a test' }).click();
  await waitedFor('POST', 'alerts/test', () =>
    page.getByRole('dialog').getByRole('button', { name: 'Send a test' }).click(),
  );
  await expect(page.getByRole('dialog', { name: 'The test' })).toContainText('There is no operator to send it to.');
});

test('a page of a list that fails is asked for once, and again when somebody wants it', async ({ open, page }) => {
  const entry = (id: number) => auditEntry(id, `of-page-${id}`);
  let [isRead, asked, isMended] = [false, 0, false];
  await page.route('**/admin/v1/audit*', (route) => {
    if (!route.request().url().includes('cursor=')) {
      // Not answered when the page reads it again by itself: that would end the error, and with it the button.
      if (isRead) return;
      isRead = true;
      return route.fulfill({ json: { entries: [entry(1)], nextCursor: 'more' } });
    }
    asked += 1;
    return route.fulfill(isMended ? { json: { entries: [entry(2)], nextCursor: null } } : fault);
  });
  await open('audit');
  await expect(page.getByRole('alert')).toContainText('Of this test');
  await expect(page.getByRole('row').filter({ hasText: 'of-page-1' })).toBeVisible();
  expect(asked).toBe(1);
  isMended = true;
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByRole('row').filter({ hasText: 'of-page-2' })).toBeVisible();
  await expect(page.getByRole('alert')).toHaveCount(0);
});

test('an answer that Heraut cannot do it now is shown, stays while it is asked again, and goes with an answer', async ({
  open,
  page,
}) => {
  let answer = (route: Route): void => void route.fulfill(unavailable('The database is out of reach.'));
  await page.route('**/admin/v1/dead-letters*', (route) => answer(route));
  await open('dead-letters');
  const alert = page.getByRole('alert');
  await expect(alert).toContainText('The database is out of reach.');
  await expect(page.getByText('service_unavailable')).toBeVisible();
  await expect(page.getByText('Heraut does not answer')).toHaveCount(0);
  const again = page.getByRole('button', { name: 'Try again' });
  const asked = new Promise<Route>((resolve) => (answer = resolve));
  await again.click();
  const waiting = await asked;
  await expect(again).toBeFocused();
  await waiting.continue();
  await expect(alert).toHaveCount(0);
});

test('where nothing answers for one of several things, the page says so until that is answered', async ({
  open,
  page,
}) => {
  await page.clock.install();
  let isAnswered = true;
  await page.route('**/admin/v1/dead-letters*', (route) =>
    isAnswered ? route.continue() : route.fulfill({ status: 504, body: 'of a proxy' }),
  );
  await open('dead-letters');
  const notice = page.getByText('Heraut does not answer. The page shows the state of');
  await expect(page.getByRole('combobox', { name: 'State' })).toBeVisible();
  await expect(page.locator('[aria-busy="true"]')).toHaveCount(0);
  isAnswered = false;
  await asTimePasses(page, () => expect(notice).toBeVisible(atOnce));
  const before = await notice.textContent();
  const others = page.waitForResponse('**/console/session');
  await comeBackTo(page);
  await others;
  // React has drawn what came, before it is looked at.
  await page.evaluate(() => new Promise(requestAnimationFrame));
  expect(await notice.textContent()).toBe(before);
  isAnswered = true;
  await asTimePasses(page, () => expect(notice).toHaveCount(0, atOnce));
});

test('an error that lasts is told once, whatever name the log has for each time', async ({ open, page }) => {
  await page.clock.install();
  let asked = 0;
  await page.route('**/admin/v1/endpoints*', (route) => {
    asked += 1;
    return route.fulfill({ ...fault, json: { ...fault.json, instance: `urn:of-this-test:${asked}` } });
  });
  await open('endpoints');
  await expect(page.getByRole('alert')).toHaveText('Internal errorOf this test');
  const line = page.getByText('The log has it under urn:of-this-test:');
  const before = await line.textContent();
  await asTimePasses(page, async () => expect(asked).toBeGreaterThanOrEqual(3));
  expect(await line.textContent()).toBe(before);
});

test('where a gateway answers a change in place of Heraut, the page says that it may have been carried out', async ({
  open,
  heraut,
  page,
}) => {
  await open(`channels/${await idOf(heraut, await heraut.createChannel())}`);
  await days(page).fill('30');
  await page.route('**/admin/v1/channels/*', (route) => route.fulfill({ status: 504, body: '' }));
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByRole('alert')).toContainText('Heraut does not answer');
  await expect(page.getByRole('alert')).toContainText('your request may have been carried out, or not');
  await expect(page.getByText('http-504')).toBeVisible();
});

test('a change that nothing answers waits for less than a minute, and the next one does not wait behind it', async ({
  open,
  heraut,
  page,
  receiver,
}) => {
  await page.clock.install();
  const id = await heraut.subscribe({ channel: await heraut.createChannel(), url: receiver.url });
  await open(`subscriptions/${id}`);
  // As where the connection is lost, and neither side knows.
  await page.route('**/pause', () => {}, { times: 1 });
  const pause = page.getByRole('button', { name: 'Pause' });
  await pause.click();
  await page.clock.fastForward(46_000);
  await expect(page.getByRole('alert').filter({ hasText: 'may have been carried out, or not' }).first()).toBeVisible();
  await pause.click();
  await expect(page.getByRole('button', { name: 'Resume' })).toBeVisible();
  await expect(page.getByText('An operator paused it')).toBeVisible();

  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  const asked = page.getByRole('dialog', { name: 'Delete this subscription?' });
  await page.route('**/subscriptions/*', (route) =>
    route.request().method() === 'DELETE' ? undefined : route.continue(),
  );
  await asked.getByRole('button', { name: 'Delete' }).click();
  await expect(asked.getByRole('button', { name: 'Cancel' })).toBeDisabled();
  await page.clock.fastForward(46_000);
  await expect(asked).toContainText('may have been carried out, or not');
  await asked.getByRole('button', { name: 'Cancel' }).click();
  await expect(asked).toHaveCount(0);
});

test('a count that nothing answers is said to wait for Heraut', async ({ open, page, heraut }) => {
  await page.clock.install();
  const channel = await heraut.createChannel();
  await page.route('**/dry-run', () => {}, { times: 1 });
  const counting = page.waitForRequest('**/dry-run');
  await open(`replays/new?channel=${channel}&count=yes`);
  await counting;
  await page.clock.fastForward(46_000);
  await expect(page.getByText(/^Heraut does not answer/)).toBeVisible();
  await asTimePasses(page, () => expect(page.getByText(/^Heraut does not answer/)).toHaveCount(0, atOnce));
});

test('a live tail that is refused for now says why, and begins by itself', async ({ open, page }) => {
  let isFull = true;
  await page.route('**/admin/v1/events*', (route) =>
    isFull ? route.fulfill(unavailable('50 listen already.')) : route.continue(),
  );
  await open('tail');
  const alert = page.getByRole('alert');
  await expect(alert).toContainText('50 listen already.');
  await expect(page.getByText('Connection lost')).toHaveCount(0);
  await expect(page.getByText('Nothing has happened since you opened this page')).toHaveCount(0);
  isFull = false;
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await expect(alert).toHaveCount(0);
});

test('what was typed for one channel is asked about before another is opened, and does not go there', async ({
  open,
  heraut,
}) => {
  const [one, other] = [await heraut.createChannel(), await heraut.createChannel()];
  const page = await open(`channels/${await idOf(heraut, one)}`);
  await days(page).fill('30');
  await page
    .getByRole('button', { name: 'Notifications' })
    .or(page.getByRole('link', { name: 'Changes' }))
    .first()
    .focus();
  await page.keyboard.press('Control+K');
  await page.keyboard.type(other);
  await palette(page).getByRole('option', { name: other }).click();
  const asked = page.getByRole('dialog', { name: 'Leave without saving?' });
  await asked.getByRole('button', { name: 'Stay' }).click();
  await expect(days(page)).toHaveValue('30');
  // Another span of the figures beside it leaves nothing.
  await page.getByText('7d', { exact: true }).click();
  await expect(page).toHaveURL(/span=7d/);
  await page.keyboard.press('Control+K');
  await page.keyboard.type(other);
  await palette(page).getByRole('option', { name: other }).click();
  await asked.getByRole('button', { name: 'Leave', exact: true }).click();
  await expect(page.getByRole('heading', { level: 1, name: other })).toBeVisible();
  await expect(days(page)).toHaveValue('');
  // A number is typed as it is said: neither is the field emptied on the way, nor the unit changed.
  const age = page.getByLabel('Greatest age', { exact: true });
  await page.getByLabel('Greatest age: Unit').selectOption('minutes');
  await age.pressSequentially('1.5');
  await expect(age).toHaveValue('1.5');
  await retype(age, '120');
  await expect(age).toHaveValue('120');
  // Nor is one put in its place that nobody typed, and that might be saved.
  await page.getByRole('combobox', { name: 'Equal in' }).fill('resource');
  await page.getByRole('combobox', { name: 'Equal in' }).press('Enter');
  await days(page).pressSequentially('-');
  await expect(days(page)).toHaveValue('');
  const within = page.getByLabel('Within', { exact: true });
  await expect(within).toHaveValue('7');
  await within.fill('');
  await expect(within).toHaveValue('');
  await expect(page.getByText('Say how long.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Save', exact: true })).toBeDisabled();
  await within.pressSequentially('2');
  await expect(within).toHaveValue('2');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByRole('button', { name: 'Discard changes' })).toHaveCount(0);
  const { body } = await heraut.api.call('GET', `/admin/v1/channels/${await idOf(heraut, other)}`);
  expect(body).toMatchObject({
    maxAgeSeconds: 7200,
    bodyRetentionDays: null,
    deduplication: { fields: ['resource'], withinSeconds: 172_800 },
  });
});

test('Back, pressed again while the question before leaving is there, leaves nothing', async ({ open, heraut }) => {
  const name = await heraut.createChannel();
  const page = await open('overview');
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Channels' }).click();
  // Of many channels only the first would be drawn.
  await page.getByRole('main').getByRole('textbox').fill(name);
  await page.getByRole('link', { name, exact: true }).click();
  await days(page).fill('30');
  const url = page.url();
  const back = () => page.evaluate(() => history.back());
  const asked = page.getByRole('dialog', { name: 'Leave without saving?' });
  await back();
  await expect(asked).toBeVisible();
  await back();
  await expect(page).toHaveURL(url);
  await expect(asked).toBeVisible();
  await asked.getByRole('button', { name: 'Stay' }).click();
  await expect(asked).toHaveCount(0);
  await expect(page).toHaveURL(url);
  await expect(days(page)).toHaveValue('30');
  await back();
  await expect(asked).toBeVisible();
  await expect(page).toHaveURL(url);
  await asked.getByRole('button', { name: 'Leave', exact: true }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Channels' })).toBeVisible();
});

for (const [path, title, label] of [
  ['channels', 'Add channel', 'Name'],
  ['applications', 'Add application', 'Client id'],
  ['subscriptions', 'New subscription', 'Callback URL'],
] as const)
  test(`${title}: its input is kept when the form is closed, and asked about before its page is left`, async ({
    open,
  }) => {
    const page = await open(path);
    const form = page.getByRole('dialog', { name: title });
    const field = form.getByLabel(label);
    const asked = page.getByRole('dialog', { name: 'Leave without saving?' });
    const elsewhere = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Endpoints' });
    await page.getByRole('button', { name: title }).first().click();
    await field.fill('https://example.org/typed');
    expect(await refusedReload(page)).toBe('beforeunload');
    await field.press('Escape');
    await expect(form).toHaveCount(0);
    await elsewhere.click();
    await expect(asked).toContainText(`Your input in “${title}” is not saved.`);
    await asked.getByRole('button', { name: 'Stay' }).click();
    await page.getByRole('button', { name: title }).first().click();
    await expect(field).toHaveValue('https://example.org/typed');
    await form.getByRole('button', { name: 'Cancel' }).click();
    await elsewhere.click();
    await asked.getByRole('button', { name: 'Leave', exact: true }).click();
    await expect(page.getByRole('heading', { level: 1, name: 'Endpoints' })).toBeVisible();
  });

test('input in a closed form is asked about where a row of the list beneath it is opened, too', async ({
  open,
  heraut,
  receiver,
}) => {
  const channel = await heraut.createChannel();
  await heraut.subscribe({ channel, url: receiver.url });
  const page = await open(`subscriptions?text=${channel}`);
  await page.getByRole('button', { name: 'New subscription' }).first().click();
  const field = page.getByRole('dialog', { name: 'New subscription' }).getByLabel('Callback URL');
  await field.fill('https://example.org/typed');
  await field.press('Escape');
  await expect(field).toHaveCount(0);
  const asked = page.getByRole('dialog', { name: 'Leave without saving?' });
  await page.locator('[data-index="0"]').press('Enter');
  await expect(asked).toBeVisible();
  await asked.getByRole('button', { name: 'Leave', exact: true }).click();
  await expect(page).toHaveURL(/\/subscriptions\/[0-9a-f-]{36}/);
});

test('a configuration that was typed stays while other pages are looked at, and is asked about before it goes', async ({
  open,
}) => {
  const page = await open('settings?tab=configuration');
  const text = page.getByLabel('Configuration in YAML');
  await page.getByRole('button', { name: 'Load what is there' }).click();
  await expect(text).not.toHaveValue('');
  // Nothing is lost with what was loaded.
  await page.reload();
  await expect(text).toHaveValue('');
  await text.click();
  await text.fill('channels: []');
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Channels' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Channels' })).toBeVisible();
  expect(await refusedReload(page)).toBe('beforeunload');
  await page.goBack();
  await expect(text).toHaveValue('channels: []');
  await page.route('**/console/session', (route) =>
    route.request().method() === 'DELETE' ? route.fulfill({ status: 204 }) : route.continue(),
  );
  await page.getByRole('button', { name: /administrator$/ }).click();
  const [question] = await Promise.all([
    refuseToLeave(page),
    page.getByRole('menuitem', { name: 'Sign out', exact: true }).click(),
  ]);
  expect(question).toBe('beforeunload');
  await expect(text).toHaveValue('channels: []');
  await text.fill('');
  await page.reload();
  await expect(text).toBeVisible();
});

test('code that does not come is asked for again; where another version was installed, what was typed stays', async ({
  open,
  heraut,
  page,
}) => {
  let lost = 0;
  await page.route('**/assets/palette-*.js', (route) => (lost++ === 0 ? route.abort() : route.continue()));
  await page.route('**/assets/sign-in-again-*.js', (route) => route.fulfill({ status: 404, body: '' }));
  await open(`channels/${await idOf(heraut, await heraut.createChannel())}`);
  await page.getByRole('link', { name: 'All channels' }).focus();
  await page.keyboard.press('Control+K');
  await expect(palette(page)).toBeVisible();
  expect(lost).toBe(2);
  await page.keyboard.press('Escape');
  await days(page).fill('30');
  await endSession(page, heraut.api.url);
  await comeBackTo(page);
  await expect(page.getByText('Another version of Heraut was installed')).toBeVisible();
  await expect(days(page)).toHaveValue('30');
});

test('the tail goes on where it was when the user is signed in again', async ({ open, heraut }) => {
  const channel = await heraut.createChannel();
  const page = await open(`tail?channel=${channel}`);
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await endSession(page, heraut.api.url);
  await comeBackTo(page);
  const over = page.getByRole('dialog', { name: 'Your session has ended' });
  await expect(over).toBeVisible();
  await heraut.publish(channel);
  await signIn(page, heraut.api.url);
  await expect(over).toHaveCount(0);
  await heraut.publish(channel);
  await expect(
    page.getByRole('table', { name: 'Events' }).getByRole('row').filter({ hasText: 'accepted' }),
  ).toHaveCount(2);
});

test('a page that came over plain HTTP publishes and copies as one over TLS', async ({ open, heraut, page }) => {
  const channel = await heraut.createChannel();
  // As browsers have it there.
  await page.addInitScript(() => {
    Object.defineProperty(Crypto.prototype, 'randomUUID', { value: undefined });
    delete (Navigator.prototype as { clipboard?: Clipboard }).clipboard;
    document.addEventListener('copy', ({ target }) => {
      document.documentElement.dataset['copied'] = (target as HTMLTextAreaElement).value;
    });
  });
  await open(`publish?channel=${channel}`);
  const url = 'https://example.org/cases/1';
  for (const name of ['mainObject', 'resourceUrl', 'resource'])
    await page.locator(`input[name="${name}"]`).fill(name === 'resource' ? 'status' : url);
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  const published = page.getByRole('region', { name: 'Published' });
  await published.getByRole('button', { name: 'Copy' }).click();
  await expect(published.getByRole('button', { name: 'Copied' })).toBeVisible();
  const id = new URL(page.url()).searchParams.get('published')!;
  await expect(page.locator('html')).toHaveAttribute('data-copied', id);
});

test('a form over something that cannot be read again says so, and stays', async ({ open, heraut, page, receiver }) => {
  await page.clock.install();
  const channel = await heraut.createChannel();
  const subscription = await heraut.subscribe({ channel, url: receiver.url });
  const forms = [
    [`channels/${await idOf(heraut, channel)}`, '**/admin/v1/channels/*', 'Days that texts are kept', '30'],
    ['alerts?tab=rules', '**/admin/v1/alert-rules', 'Tell again of what is still open after', '5'],
    ['settings', '**/admin/v1/retry-policy', 'Attempts after the first', '3'],
    [`subscriptions/${subscription}?tab=retries`, '**/retry-policy', 'Attempts after the first', '3'],
  ] as const;
  const problem = page.getByRole('alert').filter({ hasText: 'Of this test' });
  for (const [path, read, label, typed] of forms) {
    await open(path);
    const field = page.getByLabel(label);
    await retype(field, typed);
    await page.route(read, (route) => route.fulfill(fault));
    await asTimePasses(page, async () => {
      await comeBackTo(page);
      await expect(problem).toBeVisible(atOnce);
    });
    await expect(field).toHaveValue(new RegExp(`^${typed}`));
    await page.unroute(read);
    await asTimePasses(page, () => expect(problem).toHaveCount(0, atOnce));
    await page.getByRole('button', { name: 'Discard changes' }).click();
  }
});

test('a channel or an application that somebody removed is not shown as if it were there', async ({
  open,
  heraut,
  page,
}) => {
  await page.clock.install();
  const clientId = `leaves-${randomUUID().slice(0, 8)}`;
  const { body } = await heraut.api.call('POST', '/admin/v1/applications', { body: { clientId, label: 'Leaves' } });
  const application = (body as { id: string }).id;
  const channel = await idOf(heraut, await heraut.createChannel());
  const things = [
    [`channels/${channel}`, `channels/${channel}`, 'Days that texts are kept', '30'],
    [`applications?application=${application}`, `applications/${application}`, 'Alert address', 'me@example.org'],
  ] as const;
  for (const [path, resource, label, typed] of things) {
    await open(path);
    await page.getByLabel(label).fill(typed);
    expect((await heraut.api.call('DELETE', `/admin/v1/${resource}`)).status).toBe(204);
    await asTimePasses(page, async () => {
      await comeBackTo(page);
      await expect(page.getByRole('alert')).toContainText('stays for you to copy', atOnce);
    });
    await expect(page.getByLabel(label)).toHaveValue(typed);
    await expect(page.getByRole('button', { name: 'Save', exact: true })).toHaveCount(0);
    if (path.startsWith('channels/'))
      await expect(page.getByRole('button', { name: 'Remove', exact: true })).toHaveCount(0);
    await page.getByRole('button', { name: 'Discard changes' }).click();
    await page.reload();
    await expect(page.getByText(/There is no such channel|not there any more/).first()).toBeVisible();
  }
});

test('volumes and totals that cannot be read are not passed over', async ({ open, heraut, page, receiver }) => {
  await page.route('**/admin/v1/activity*', (route) => route.fulfill(fault));
  await page.route('**/admin/v1/activity/totals*', (route) => route.fulfill(fault));
  const channel = await heraut.createChannel();
  const subscription = await heraut.subscribe({ channel, url: receiver.url });
  const places = [`channels/${await idOf(heraut, channel)}`, 'channels', 'applications', 'subscriptions'];
  for (const place of [...places, `subscriptions/${subscription}`]) {
    await open(place);
    await expect(page.getByRole('alert').filter({ hasText: 'Of this test' }).first(), place).toBeVisible();
  }
});

test('where it is not known whether anything has changed since, a list and a notification say so', async ({
  open,
  heraut,
  page,
}) => {
  const { id } = await heraut.publish(await heraut.createChannel());
  const problem = page.getByRole('alert').filter({ hasText: 'Of this test' });
  await page.route(
    ({ pathname, searchParams }) => pathname.endsWith('/admin/v1/notifications') && searchParams.has('acceptedFrom'),
    (route) => route.fulfill(fault),
  );
  await page.route('**/admin/v1/deliveries?notification=*', (route) => route.fulfill(fault));
  for (const place of ['notifications', `notifications/${id}`]) {
    await open(place);
    await expect(problem).toBeVisible();
  }
  await page.unrouteAll();
  await expect(problem).toHaveCount(0); // it asks again by itself
});
