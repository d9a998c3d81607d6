import { randomUUID } from 'node:crypto';
import type { Installation } from '../../test/support/installation.js';
import { answer, protectedReceiver, Receiver, reset, type Behaviour } from '../../test/support/receiver.js';
import { asTimePasses, atOnce, expect, lookAt, signIn, test } from './harness.js';

interface Broken {
  receiver: Receiver;
  subscriptionId: string;
  channel: string;
  /** Of its dead letters. */
  notificationIds: string[];
}

/** A subscription with that many dead letters, one attempt each. */
async function broken(
  heraut: Installation,
  count: number,
  behaviour: Behaviour | 'refuse' = answer(500),
): Promise<Broken> {
  const receiver = await Receiver.start();
  const channel = await heraut.createChannel();
  const subscriptionId = await heraut.subscribe({ channel, url: receiver.url });
  const path = `/admin/v1/subscriptions/${subscriptionId}/retry-policy`;
  await heraut.api.call('PUT', path, { body: { maxRetries: 0 } });
  if (behaviour === 'refuse') await receiver.stop();
  else receiver.always(behaviour);
  const notificationIds: string[] = [];
  for (let nr = 0; nr < count; nr++) notificationIds.push((await heraut.publish(channel)).id);
  for (const id of notificationIds) await heraut.becomes('failed', id, subscriptionId);
  return { receiver, subscriptionId, channel, notificationIds };
}

const nameOf = ({ receiver }: Broken): string => receiver.url.replace('http://', '');

test('dead letters stand by receiver and error, open to the single ones, and one of them is sent again', async ({
  open,
  heraut,
}) => {
  const [failing, refusing] = [await broken(heraut, 2), await broken(heraut, 1, 'refuse')];
  failing.receiver.next(answer(404));
  const gone = await heraut.publish(failing.channel);
  await heraut.becomes('failed', gone.id, failing.subscriptionId);
  const page = await open('dead-letters');
  const section = page.getByRole('region', { name: nameOf(failing) });
  await expect(section.getByText('answered 5xx')).toBeVisible();
  await expect(section.getByText('answered 4xx')).toBeVisible();
  await expect(page.getByRole('region', { name: nameOf(refusing) }).getByText('no connection')).toBeVisible();

  await section.getByRole('button', { name: `Show the dead letters of answered 5xx, ${nameOf(failing)}` }).click();
  await expect(page).toHaveURL(/open=/);
  const letters = section.getByRole('table', { name: `${nameOf(failing)}: answered 5xx` });
  await expect(letters.getByRole('row')).toHaveCount(3);
  await lookAt(page, 'dead-letters');
  failing.receiver.always(protectedReceiver);
  const [first] = failing.notificationIds;
  await letters.getByRole('button', { name: `Send again: ${first}` }).click();
  await expect(page.getByText('It is sent again')).toBeVisible();
  await heraut.becomes('delivered', first!, failing.subscriptionId);
  // It stays where it was: another one would come under the next click.
  await expect(letters.getByRole('row')).toHaveCount(3);
  await expect(letters.getByRole('button', { name: `Send again: ${first}` })).toHaveCount(0);

  // The address is the state: filters are in it, and it opens for a colleague as it was.
  await page.getByRole('combobox', { name: 'Error' }).click();
  const asked = new Promise<() => void>((resolve) => {
    const ofConnections = '**/admin/v1/dead-letters?*errorClass=connection*';
    void page.route(ofConnections, (route) => resolve(() => void route.continue()), { times: 1 });
  });
  await page.getByRole('option', { name: 'no connection' }).click();
  await expect(page).toHaveURL(/errorClass=connection/);
  const goOn = await asked;
  // Those of before are still there, and nothing is done with them as if they were those of the filter.
  await expect(section).toBeVisible();
  await expect(page.getByRole('button', { name: 'Send all again' })).toBeDisabled();
  goOn();
  await expect(section).toHaveCount(0);
  await page.reload();
  await expect(page.getByRole('region', { name: nameOf(refusing) })).toBeVisible();
  const selected = `delivery=${first}~${failing.subscriptionId}`;
  const clearFilters = page.getByRole('button', { name: 'Clear filters' });
  for (const which of [0, 1]) {
    await page.goto(page.url().replace(/\?.*$|$/, `?errorClass=tls&${selected}`));
    await expect(page.getByRole('heading', { name: 'No dead letter fits' })).toBeVisible();
    await clearFilters.nth(which).click();
    await expect(section).toBeVisible();
    await expect(page).not.toHaveURL(/delivery=/);
    // The button is gone, and the focus is where another filter can be chosen.
    await expect(page.getByRole('group', { name: 'Filters' })).toBeFocused();
  }
});

test('where not all could be looked at, subscriptions are at least so many as well', async ({ open, heraut }) => {
  const failing = await broken(heraut, 1);
  const page = await open('overview');
  let changes: object = { count: 5000, subscriptions: 40, isComplete: false };
  await page.route('**/admin/v1/dead-letters?*', async (route) => {
    const response = await route.fetch();
    const found = (await response.json()) as object;
    await route.fulfill({ response, json: { ...found, ...changes } });
  });
  await page.goto(page.url().replace('overview', `dead-letters?subscription=${failing.subscriptionId}`));
  await expect(page.getByText(/^at least 5,000 dead letters for at least 40 subscriptions, as of/)).toBeVisible();
  changes = { count: 5000, subscriptions: undefined }; // an api of the version before
  await page.reload();
  await expect(page.getByText(/^5,000 dead letters, as of/)).toBeVisible();
});

test('of several letters that are sent again each tells in its own place what became of it, and none moves', async ({
  open,
  heraut,
}) => {
  const failing = await broken(heraut, 3);
  const [refused, sent, arrived] = failing.notificationIds;
  const page = await open(`dead-letters?subscription=${failing.subscriptionId}`);
  await page.getByRole('button', { name: /^Show the dead letters/ }).click();
  const letters = page.getByRole('table', { name: `${nameOf(failing)}: answered 5xx` });
  const row = (id: string | undefined) => letters.getByRole('row').filter({ has: page.getByTitle(id!) });
  const sendAgain = (id: string | undefined) => letters.getByRole('button', { name: `Send again: ${id}` });
  await expect(letters.getByRole('row')).toHaveCount(4);
  const { id: another } = await heraut.publish(failing.channel);
  await heraut.becomes('failed', another, failing.subscriptionId);
  failing.receiver.always(protectedReceiver);
  await heraut.command('retry', arrived!, failing.subscriptionId);
  await heraut.becomes('delivered', arrived!, failing.subscriptionId);
  let lettersRead = 0;
  page.on('request', (request) => {
    if (new URL(request.url()).pathname.endsWith('/admin/v1/deliveries')) lettersRead += 1;
  });
  const underWay = new Promise<() => void>((resolve) => {
    const problem = { status: 503, code: 'day-away', title: 'Its day is away' };
    void page.route(`**/${refused}/*/retry`, (route) =>
      resolve(() => void route.fulfill({ status: 503, contentType: 'application/problem+json', json: problem })),
    );
  });
  await sendAgain(refused).click();
  const goOn = await underWay;
  await sendAgain(sent).click();
  await expect(row(sent)).toContainText(/sent again|delivered/);
  await expect(sendAgain(refused)).toBeDisabled();
  await sendAgain(arrived).click();
  await expect(row(arrived)).toContainText('delivered');
  goOn();
  const told = (id: string | undefined) => page.getByRole('alert').filter({ hasText: `Not sent again: ${id}` });
  await expect(told(refused)).toContainText('Its day is away');
  await expect(told(arrived)).toContainText('arrived already');
  await expect(sendAgain(refused)).toBeEnabled();
  await lookAt(page, 'dead-letters-sent-again');
  // The counts are read again, the letters are not.
  await expect(page.getByRole('group', { name: 'answered 5xx' }).getByText('2', { exact: true })).toBeVisible();
  await expect(row(another)).toHaveCount(0);
  await expect(letters.getByRole('row')).toHaveCount(4);
  expect(lettersRead).toBe(0);
});

test('a time that is typed only in part narrows nothing, and nothing is done to all meanwhile', async ({
  open,
  heraut,
}) => {
  const failing = await broken(heraut, 1);
  const page = await open(`dead-letters?channel=${failing.channel}`);
  const sendAll = page.getByRole('button', { name: 'Send all again' });
  const closeAll = page.getByRole('button', { name: 'Close all' });
  await expect(sendAll).toBeEnabled();
  const from = page.getByLabel('Accepted from');
  await from.pressSequentially('11');
  await expect(sendAll).toBeDisabled();
  await expect(closeAll).toBeDisabled();
  await page.getByLabel('Accepted before').focus();
  await expect(page.getByText('This is no time.')).toBeVisible();
  // Also those of the list itself.
  await expect(page.locator('[inert]').getByRole('button', { name: 'Send again' })).toHaveCount(1);
  await lookAt(page, 'dead-letters-wrong-time');
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await expect(page.getByText('This is no time.')).toHaveCount(0);
  await expect(sendAll).toBeEnabled();
  await from.fill('0026-11-28T02:00');
  await expect(sendAll).toBeDisabled();
  await from.fill('2099-11-28T02:00');
  await expect(page).toHaveURL(/acceptedFrom=2099/);
  await expect(page.getByRole('heading', { name: 'No dead letter fits' })).toBeVisible();
});

test('in the nights in which the clock is set, a time is the one that the page says, or wrong', async ({
  browser,
  heraut,
}) => {
  const { channel } = await broken(heraut, 1);
  const context = await browser.newContext({ timezoneId: 'Europe/Amsterdam', locale: 'en-GB' });
  const page = await context.newPage();
  await signIn(page, heraut.api.url);
  await page.goto(`${heraut.api.url}/console/dead-letters?channel=${channel}&acceptedTo=2026-10-25T01:30:00.000Z`);
  const to = page.getByLabel('Accepted before');
  const addressHas = (moment: string) =>
    expect.poll(() => new URL(page.url()).searchParams.get('acceptedTo')).toBe(moment);
  await expect(to).toHaveValue('2026-10-25T02:30');
  await expect(to).toHaveAccessibleDescription(/Taken: 25 Oct 2026, 02:30:00 CET\./);
  await to.fill('2026-10-25T02:45');
  await addressHas('2026-10-25T00:45:00.000Z');
  await expect(to).toHaveAccessibleDescription(/Taken: 25 Oct 2026, 02:45:00 CEST\./);
  await page.getByRole('button', { name: 'Take 25 Oct 2026, 02:45:00 CET' }).click();
  await addressHas('2026-10-25T01:45:00.000Z');
  await expect(to).toHaveValue('2026-10-25T02:45');
  await expect(to).toHaveAccessibleDescription(/Taken: 25 Oct 2026, 02:45:00 CET\./);
  await lookAt(page, 'dead-letters-time-twice');
  await to.fill('2027-03-28T02:30');
  await expect(page.getByRole('button', { name: 'Close all' })).toBeDisabled();
  await page.getByLabel('Accepted from').focus();
  await expect(page.getByText('The hour that the clock skips in spring is none.')).toBeVisible();
  await to.fill('2027-03-28T03:30');
  await addressHas('2027-03-28T01:30:00.000Z');
  await expect(to).not.toHaveAccessibleDescription(/./);
  await page.goto(`${heraut.api.url}/console/publish?channel=${channel}`);
  await page.getByRole('button', { name: 'When, and other terms' }).click();
  await page.getByLabel('Not before').fill('2026-10-25T02:45');
  await expect(page.getByLabel('Not before')).toHaveAccessibleDescription(/Taken: 25 Oct 2026, 02:45:00 CEST\./);
  await context.close();
});

test('an address with a filter that is not understood shows nothing, and nothing is meant by it', async ({
  open,
  heraut,
}) => {
  await broken(heraut, 1);
  const page = await open('dead-letters');
  await expect(page.getByRole('button', { name: 'Send all again' })).toBeEnabled();
  const pageUrl = page.url();
  for (const [name, value, shownIn] of [
    ['subscription', 'abc', page.getByRole('combobox', { name: 'Subscription' })],
    ['errorClass', 'typo', page.getByRole('combobox', { name: 'Error' })],
    ['state', 'delivered', page.getByRole('combobox', { name: 'State' })],
  ] as const) {
    await page.goto(`${pageUrl}?${name}=${value}`);
    await expect(page.getByRole('alert')).toContainText(name);
    await expect(shownIn).toHaveValue(value);
    await expect(page.getByRole('button', { name: 'Send all again' })).toBeDisabled();
  }
  // A filter of other lists, and more of one than this list can have: without them, more would be meant.
  for (const address of [
    `notification=${randomUUID()}`,
    'mainObject=x',
    'publisher=x',
    'channel=a&channel=b',
    'state=failed&state=unknown',
  ]) {
    await page.goto(`${pageUrl}?${address}`);
    await expect(page.getByRole('alert')).toContainText(address.split('=')[0]!);
    for (const name of ['Send all again', 'Close all']) await expect(page.getByRole('button', { name })).toBeDisabled();
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await expect(page.getByRole('button', { name: 'Close all' })).toBeEnabled();
  }
  for (const address of ['replay=typo', 'acceptedTo=yesterday', 'acceptedFrom=0026-11-28T02:00']) {
    await page.goto(`${pageUrl}?${address}`);
    await expect(page.getByRole('alert')).toContainText(address.split('=')[0]!);
    await expect(page.getByRole('button', { name: 'Close all' })).toBeDisabled();
  }
  await expect(page.getByText('This is no time.')).toBeVisible();
  await page.goto(pageUrl.replace('dead-letters', 'replays/new?state=queued&count=yes'));
  const result = page.getByRole('region', { name: 'Result of the count' });
  await expect(result.getByRole('alert')).toContainText('states');
  await expect(result.getByRole('button', { name: /^Send/ })).toHaveCount(0);
  // A state that cannot be chosen there goes with the first one chosen.
  await page.getByRole('checkbox', { name: /cancelled/ }).check();
  await expect(page).toHaveURL(/new\?state=cancelled$/);
});

test('one that may have arrived is sent again only when that is confirmed', async ({ open, heraut, receiver }) => {
  const channel = await heraut.createChannel();
  const subscriptionId = await heraut.subscribe({ channel, url: receiver.url, deliveryGuarantee: 'at-most-once' });
  receiver.next(reset);
  const { id } = await heraut.publish(channel);
  await heraut.becomes('unknown', id, subscriptionId);
  const page = await open(`dead-letters?subscription=${subscriptionId}`);
  // With all of them it is not sent, and that is said: only where its state or its group is named.
  const all = page.getByRole('dialog', { name: 'Send again', exact: true });
  const leftOut = all.getByText('Those of which it is not known whether they arrived are not among these.');
  await page.getByRole('button', { name: 'Send all again' }).click();
  await expect(all.getByText('Nothing is meant.')).toBeVisible();
  await expect(leftOut).toBeVisible();
  await lookAt(page, 'send-again-unknown');
  await all.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('region').getByRole('button', { name: 'Send again', exact: true }).first().click();
  await expect(all.getByText('1 delivery of 1 notification is meant.')).toBeVisible();
  await expect(leftOut).toHaveCount(0);
  await all.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: /^Show the dead letters/ }).click();
  await page.getByRole('button', { name: `Send again: ${id}` }).click();
  const dialog = page.getByRole('dialog', { name: 'Send it again?' });
  await expect(dialog.getByText('It may have arrived.')).toBeVisible();
  await expect(dialog).toContainText(id);
  expect((await heraut.delivery(id, subscriptionId)).state).toBe('unknown');
  await dialog.getByRole('button', { name: 'Send again' }).click();
  await heraut.becomes('delivered', id, subscriptionId);
});

test('nothing is offered to be sent again where its subscription is disabled or deleted', async ({ open, heraut }) => {
  const failing = await broken(heraut, 1);
  const { subscriptionId } = failing;
  failing.receiver.next(answer(410));
  await heraut.publish(failing.channel);
  const subscription = async () => (await heraut.api.call('GET', `/admin/v1/subscriptions/${subscriptionId}`)).body;
  await expect.poll(subscription).toMatchObject({ disabledAt: expect.any(String) });
  const page = await open(`dead-letters?subscription=${subscriptionId}`);
  const group = page.getByRole('group', { name: 'answered 5xx' });
  await group.getByRole('button', { name: /^Show the dead letters/ }).click();
  const [id] = failing.notificationIds;
  await expect(group.getByRole('button', { name: `Send again: ${id}` })).toBeDisabled();
  await open(`notifications/${id}`);
  const deliveries = page.getByRole('list', { name: 'Deliveries' });
  await expect(deliveries.getByText('disabled')).toBeVisible();
  await expect(deliveries.getByRole('button', { name: 'Send again' })).toHaveCount(0);
  await heraut.unsubscribe(subscriptionId);
  await page.reload();
  await expect(deliveries.getByText('deleted')).toBeVisible();
  await expect(deliveries.getByRole('button', { name: 'Send again' })).toHaveCount(0);
  await failing.receiver.stop();
});

test('a group is sent again after a dry run, at a rate, and its page shows how far it is', async ({ open, heraut }) => {
  const failing = await broken(heraut, 3);
  failing.receiver.always(protectedReceiver);
  failing.receiver.next(answer(503));
  const page = await open(`dead-letters?subscription=${failing.subscriptionId}`);
  await page
    .getByRole('region', { name: nameOf(failing) })
    .getByRole('button', { name: 'Send again' })
    .click();
  const dialog = page.getByRole('dialog', { name: 'Send again' });
  await expect(dialog.getByText('3 deliveries of 3 notifications are meant.')).toBeVisible();
  await expect(dialog.getByText('Those whose content was erased are counted, and passed over')).toBeVisible();
  await dialog.getByRole('textbox', { name: 'Deliveries a second' }).fill('50');
  await dialog.getByRole('button', { name: 'When, and a note' }).click();
  await dialog.getByRole('textbox', { name: 'Note' }).fill('a bad deploy');
  await lookAt(page, 'send-again');
  // Its answer is lost. Asked for once more, the same one is shown.
  await page.route('**/admin/v1/replays', (route) => route.fetch().then(() => route.abort()), { times: 1 });
  await dialog.getByRole('button', { name: 'Send 3 again' }).click();
  await expect(dialog.getByText('It may have been done all the same.')).toBeVisible();
  await dialog.getByRole('button', { name: 'Send 3 again' }).click();
  await expect(page).toHaveURL(/\/replays\/[0-9a-f-]{36}$/);
  await expect(page.getByText('3 of 3')).toBeVisible();
  await expect(page.getByText('done', { exact: true })).toBeVisible();
  await expect(page.getByText('a bad deploy')).toBeVisible();
  const { body } = await heraut.api.call('GET', '/admin/v1/replays?limit=200');
  const { replays } = body as { replays: { selection: { groups?: { subscriptionId: string }[] } }[] };
  const ofIt = replays.filter(({ selection }) => selection.groups?.[0]?.subscriptionId === failing.subscriptionId);
  expect(ofIt).toHaveLength(1);
  // The one that failed again is counted, and leads to itself.
  const failedAgain = page.getByRole('link', { name: 'Look at them' });
  // Within seconds, and not only after half a minute.
  await expect(failedAgain.locator('..')).toHaveText(/^1\D/, { timeout: 25_000 });
  await failedAgain.click();
  await expect(page).toHaveURL(/dead-letters\?replay=/);
  await expect(page.getByText('1 dead letter for 1 subscription')).toBeVisible();
});

test('the letters of an open group stay where they are, whatever fails meanwhile, until they are read again', async ({
  open,
  page,
  heraut,
}) => {
  await page.clock.install();
  const one = await broken(heraut, 1);
  await open('dead-letters');
  const section = page.getByRole('region', { name: nameOf(one) });
  await section.getByRole('button', { name: /^Show the dead letters/ }).click();
  await expect(section.getByRole('checkbox', { name: `Select ${one.notificationIds[0]}` })).toBeVisible();
  const { id } = await heraut.publish(one.channel);
  await heraut.becomes('failed', id, one.subscriptionId);
  let [groupsRead, lettersRead] = [0, 0];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.endsWith('/admin/v1/dead-letters')) groupsRead += 1;
    if (pathname.endsWith('/admin/v1/deliveries')) lettersRead += 1;
  });
  await asTimePasses(page, async () => expect(groupsRead).toBeGreaterThanOrEqual(3));
  await page.evaluate(() => void dispatchEvent(new Event('visibilitychange')));
  const row = section.getByRole('group', { name: 'answered 5xx' });
  await asTimePasses(page, () => expect(row.getByText('2', { exact: true })).toBeVisible(atOnce));
  const letter = section.getByRole('checkbox', { name: `Select ${id}` });
  await expect(letter).toHaveCount(0);
  expect(lettersRead).toBe(0);
  await expect(section.getByText(/^As of /)).toBeVisible();
  await section.getByRole('button', { name: 'Read again' }).click();
  await expect(letter).toBeVisible();
  await one.receiver.stop();
});

test('single ones and whole groups are selected and closed with a reason', async ({ open, page, heraut }) => {
  await page.clock.install();
  const [one, other] = [await broken(heraut, 2), await broken(heraut, 2)];
  await open('dead-letters');
  const [ofOne, ofOther] = [one, other].map((each) => page.getByRole('region', { name: nameOf(each) }));
  await ofOne!.getByRole('button', { name: /^Show the dead letters/ }).click();
  const [first, second] = one.notificationIds;
  await ofOne!.getByRole('checkbox', { name: `Select ${first}` }).check();
  await ofOther!.getByRole('checkbox', { name: `Select all of ${nameOf(other)}` }).check();
  const bar = page.getByRole('region', { name: 'Actions on the selection' });
  await expect(bar.getByText('Selected: 1 group with 2 dead letters')).toBeVisible();
  await expect(bar.getByText('Selected: 1 dead letter', { exact: true })).toBeVisible();
  await expect(page).toHaveURL(/group=.*delivery=|delivery=.*group=/);
  await lookAt(page, 'dead-letters-selected');

  await bar.getByRole('button', { name: 'Close', exact: true }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Close dead letters' });
  const close = dialog.getByRole('button', { name: 'Close 2', exact: true });
  await expect(close).toBeDisabled();
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('sent by hand');
  // Closed by mistake: what was typed is still there.
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  await bar.getByRole('button', { name: 'Close', exact: true }).first().click();
  await expect(dialog.getByRole('textbox', { name: 'Reason' })).toHaveValue('sent by hand');
  await close.click();
  await expect(page).toHaveURL(/\/replays\/[0-9a-f-]{36}$/);
  for (const id of other.notificationIds) await heraut.becomes('cancelled', id, other.subscriptionId);
  await page.goBack();
  await expect(ofOne!).toBeVisible();
  // The groups found before may be shown for a moment longer.
  await asTimePasses(page, () => expect(ofOther!).toHaveCount(0, atOnce));
  await page.getByRole('button', { name: 'Close', exact: true }).last().click();
  // A reason is of one selection.
  await expect(dialog.getByRole('textbox', { name: 'Reason' })).toHaveValue('');
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('sent by hand');
  await dialog.getByRole('button', { name: 'Close 1', exact: true }).click();
  await heraut.becomes('cancelled', first!, one.subscriptionId);
  expect((await heraut.delivery(second!, one.subscriptionId)).state).toBe('failed');
});

test('what another operator did in between is explained, and the new count is offered', async ({
  open,
  page,
  heraut,
}) => {
  await page.clock.install();
  const failing = await broken(heraut, 2);
  failing.receiver.always(protectedReceiver);
  await open(`dead-letters?channel=${failing.channel}`);
  await page.getByRole('button', { name: 'Send all again' }).click();
  const dialog = page.getByRole('dialog', { name: 'Send again' });
  await expect(dialog.getByText('2 deliveries of 2 notifications are meant.')).toBeVisible();
  const [first, second] = failing.notificationIds;
  await heraut.command('retry', first!, failing.subscriptionId);
  await heraut.becomes('delivered', first!, failing.subscriptionId);
  const underWay = new Promise<() => void>((resolve) => {
    void page.route('**/admin/v1/replays', (route) => resolve(() => void route.continue()), { times: 1 });
  });
  await dialog.getByRole('button', { name: 'Send 2 again' }).click();
  const goOn = await underWay;
  // It is under way: what becomes of it has to be seen.
  await page.keyboard.press('Escape');
  await page.mouse.click(2, 2);
  await expect(dialog.getByRole('button', { name: 'Cancel' })).toBeDisabled();
  goOn();
  await expect(dialog.getByText('It has changed in the meantime')).toBeVisible();
  await expect(dialog.getByText('You confirmed 2; now it is 1.')).toBeVisible();
  await lookAt(page, 'send-again-changed');
  await dialog.getByRole('button', { name: 'Send 1 again' }).click();
  await heraut.becomes('delivered', second!, failing.subscriptionId);
  await expect(page.getByText('1 of 1')).toBeVisible();
  // Nothing is meant any more, and the console says so.
  // Read again at once, although it was read a moment ago; by itself the page would in ten seconds.
  const readAgain = page.waitForRequest(/\/admin\/v1\/dead-letters\?channel=/, { timeout: 9_000 });
  await page.goBack();
  await readAgain;
  const none = page.getByRole('heading', { name: 'No dead letter fits' });
  await asTimePasses(page, () => expect(none).toBeVisible(atOnce));
});

test('a dead letter that was accepted after the count is neither closed nor sent again', async ({
  open,
  page,
  heraut,
}) => {
  const failing = await broken(heraut, 1);
  const dies = async () => {
    const { id } = await heraut.publish(failing.channel);
    await heraut.becomes('failed', id, failing.subscriptionId);
    return id;
  };
  const list = `dead-letters?channel=${failing.channel}`;
  await open(list);
  await page.getByRole('button', { name: 'Close all' }).click();
  const closing = page.getByRole('dialog', { name: 'Close dead letters' });
  await closing.getByRole('textbox', { name: 'Reason' }).fill('sent by hand');
  await expect(closing.getByRole('button', { name: 'Close 1', exact: true })).toBeEnabled();
  const later = await dies();
  await closing.getByRole('button', { name: 'Close 1', exact: true }).click();
  await expect(page.getByText('1 of 1')).toBeVisible();
  await heraut.becomes('cancelled', failing.notificationIds[0]!, failing.subscriptionId);
  expect((await heraut.delivery(later, failing.subscriptionId)).state).toBe('failed');

  await open(list);
  await page.getByRole('button', { name: 'Send all again' }).click();
  const sending = page.getByRole('dialog', { name: 'Send again' });
  await expect(sending.getByRole('button', { name: 'Send 1 again' })).toBeEnabled();
  const last = await dies();
  failing.receiver.always(protectedReceiver);
  await sending.getByRole('button', { name: 'Send 1 again' }).click();
  await expect(page.getByText('1 of 1')).toBeVisible();
  await heraut.becomes('delivered', later, failing.subscriptionId);
  expect((await heraut.delivery(last, failing.subscriptionId)).state).toBe('failed');
  await failing.receiver.stop();
});

test('what one replay sent in vain is closed as that, and the page of the work leads to the replay', async ({
  open,
  page,
  heraut,
}) => {
  const failing = await broken(heraut, 1);
  await open(`dead-letters?subscription=${failing.subscriptionId}`);
  await page.getByRole('button', { name: 'Send all again' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Send 1 again' }).click();
  await expect(page.getByText('1 of 1')).toBeVisible();
  const replay = page.url().split('/').at(-1)!;
  await heraut.becomes('failed', failing.notificationIds[0]!, failing.subscriptionId);
  await open(`dead-letters?replay=${replay}`);
  await page.getByRole('button', { name: 'Close all' }).click();
  const dialog = page.getByRole('dialog', { name: 'Close dead letters' });
  await dialog.getByRole('textbox', { name: 'Reason' }).fill('they have it from us');
  await dialog.getByRole('button', { name: 'Close 1', exact: true }).click();
  await expect(page).not.toHaveURL(new RegExp(replay));
  await expect(page.getByRole('main').getByRole('link', { name: replay })).toBeVisible();
  await page.getByRole('link', { name: 'Replays' }).click();
  const works = page.getByRole('table', { name: 'Replays, the newest first' });
  await expect(works.getByText(`Sent again by …${replay.slice(-12)}`)).toBeVisible();
  await failing.receiver.stop();
});

test('a list of many stays small in the document, and reaches its end; no more is selected than an address can name', async ({
  open,
  heraut,
}) => {
  const failing = await broken(heraut, 1);
  const [known] = failing.notificationIds;
  const { body } = await heraut.api.call(
    'GET',
    `/admin/v1/deliveries?subscription=${failing.subscriptionId}&state=failed`,
  );
  const [delivery] = (body as { deliveries: object[] }).deliveries;
  const page = await open('overview');
  await page.route('**/admin/v1/deliveries?*', async (route) => {
    const from = Number(new URL(route.request().url()).searchParams.get('cursor') ?? 0);
    const deliveries = Array.from({ length: 200 }, (_, nr) => ({
      ...delivery,
      notificationId: `${known!.slice(0, -6)}${String(from + nr).padStart(6, '0')}`,
    }));
    const nextCursor = from + 200 < 1000 ? String(from + 200) : null;
    await route.fulfill({ json: { deliveries, nextCursor, searchedTo: null } });
  });
  const selected = Array.from({ length: 87 }, () => `&delivery=${randomUUID()}%7E${randomUUID()}`).join('');
  await page.goto(page.url().replace('overview', `dead-letters?subscription=${failing.subscriptionId}${selected}`));
  await page.getByRole('button', { name: /^Show the dead letters/ }).click();
  await expect(page.getByText('Selected: 87 dead letters')).toBeVisible();
  await expect(page.getByText(/^No more can be selected/)).toBeVisible();
  await expect(page.getByRole('checkbox', { name: /^Select all of/ })).toBeDisabled();
  await page.getByRole('button', { name: 'Clear selection' }).click();
  await expect(page.getByRole('checkbox', { name: /^Select all of/ })).toBeEnabled();
  const list = page.getByRole('table', { name: /answered 5xx$/ });
  await expect(list.getByRole('row').nth(5)).toBeVisible();
  const scroller = list.getByRole('rowgroup').nth(1);
  // To the end of what is there, as often as it takes: each time the next page comes.
  await expect(async () => {
    await scroller.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    expect(await list.getByRole('row').count()).toBeLessThan(60);
    await expect(list).toHaveAttribute('aria-rowcount', '1001', atOnce);
  }).toPass();
  await scroller.evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await expect(list.getByRole('link', { name: /000999$/ })).toBeVisible();
});
