import type { Locator, Page } from '@playwright/test';
import type { Installation } from '../../test/support/installation.js';
import { answer, protectedReceiver, Receiver, type Behaviour } from '../../test/support/receiver.js';
import { expect, test } from './harness.js';

/*
 * Incidents as they happen, solved by an operator who begins at the overview: in at most six clicks, which are counted.
 * To type is no click, and neither is what the receiver's owner does.
 */
const mostClicks = 6;

/** Clicks for the operator, and counts. */
function operatorOf(): { click: (locator: Locator) => Promise<void>; clicks: () => number } {
  let clicks = 0;
  return {
    click: async (locator) => {
      clicks++;
      await locator.click();
    },
    clicks: () => clicks,
  };
}

interface Affected {
  receiver: Receiver;
  subscriptionId: string;
  missed: string[];
}

/** A receiver whose deliveries have one attempt, and what it did not take. */
async function affected(
  heraut: Installation,
  count: number,
  break_: (receiver: Receiver) => unknown,
): Promise<Affected> {
  const receiver = await Receiver.start();
  const channel = await heraut.createChannel();
  const subscriptionId = await heraut.subscribe({ channel, url: receiver.url });
  const path = `/admin/v1/subscriptions/${subscriptionId}/retry-policy`;
  await heraut.api.call('PUT', path, { body: { maxRetries: 0 } });
  await break_(receiver);
  const missed: string[] = [];
  for (let nr = 0; nr < count; nr++) missed.push((await heraut.publish(channel)).id);
  for (const id of missed) await heraut.becomes('failed', id, subscriptionId);
  return { receiver, subscriptionId, missed };
}

const nameOf = ({ receiver }: Affected): string => receiver.url.replace('http://', '');

/** From the overview to what could not be delivered. */
const toDeadLetters = (page: Page) => page.getByRole('main').getByRole('link', { name: /^Dead letters: / });

async function sendAgain(page: Page, one: Affected): Promise<number> {
  const { click, clicks } = operatorOf();
  await click(toDeadLetters(page));
  const section = page.getByRole('region', { name: nameOf(one) });
  await click(section.getByRole('button', { name: 'Send again' }));
  await click(page.getByRole('dialog').getByRole('button', { name: `Send ${one.missed.length} again` }));
  await expect(page.getByText(`${one.missed.length} of ${one.missed.length}`)).toBeVisible();
  return clicks();
}

test('a receiver that was down gets what it missed', async ({ open, heraut }) => {
  const [one, other] = [
    await affected(heraut, 3, (receiver) => receiver.stop()),
    await affected(heraut, 1, (receiver) => receiver.stop()),
  ];
  const page = await open('overview');
  await one.receiver.start();
  expect(await sendAgain(page, one)).toBeLessThanOrEqual(mostClicks);
  for (const id of one.missed) await heraut.becomes('delivered', id, one.subscriptionId);
  // A receiver that is still down is left alone.
  expect((await heraut.delivery(other.missed[0]!, other.subscriptionId)).state).toBe('failed');
  await one.receiver.stop();
});

test('what failed with 500 after a deploy is sent again once that was rolled back, and nothing else', async ({
  open,
  heraut,
}) => {
  const deploy: Behaviour = answer(500, {}, 'NullPointerException');
  const one = await affected(heraut, 3, (receiver) => {
    receiver.next(answer(415)); // not of the deploy: this one will never be taken
    receiver.always(deploy);
  });
  const [refused, ...failed] = one.missed;
  const page = await open('overview');
  one.receiver.always(protectedReceiver);
  const { click, clicks } = operatorOf();
  await click(toDeadLetters(page));
  const section = page.getByRole('region', { name: nameOf(one) });
  await expect(section.getByText('HTTP 500: NullPointerException')).toBeVisible();
  const row = section.getByRole('group', { name: 'answered 5xx' });
  await click(row.getByRole('button', { name: 'Send again' }));
  await click(page.getByRole('dialog').getByRole('button', { name: 'Send 2 again' }));
  await expect(page.getByText('2 of 2')).toBeVisible();
  expect(clicks()).toBeLessThanOrEqual(mostClicks);
  for (const id of failed) await heraut.becomes('delivered', id, one.subscriptionId);
  expect((await heraut.delivery(refused!, one.subscriptionId)).state).toBe('failed');
  await one.receiver.stop();
});

test('a filter that kept notifications away is corrected, and what it missed is sent', async ({ open, heraut }) => {
  const channel = await heraut.createChannel(['kind']);
  const receiver = await Receiver.start();
  const kanalen = [{ naam: channel, filters: { kind: 'permitt' } }];
  const subscriptionId = await heraut.subscribe({ channel, url: receiver.url, kanalen });
  for (const kind of ['permit', 'other', 'permit']) await heraut.publish(channel, { kenmerken: { kind } });
  const page = await open('overview');
  const { click, clicks } = operatorOf();
  await click(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Subscriptions' }));
  await page.getByRole('searchbox').fill(subscriptionId);
  await click(page.getByRole('table', { name: 'Subscriptions' }).getByRole('link', { name: receiver.url }));
  await click(page.getByRole('tab', { name: 'Filters' }));
  await page.getByRole('textbox', { name: 'kind: Value' }).fill('permit');
  await expect(page.getByText('Would have matched 2 of 3 notifications')).toBeVisible();
  await click(page.getByRole('button', { name: 'Save', exact: true }));
  await click(page.getByRole('link', { name: 'Send what it missed' }));
  await click(page.getByRole('button', { name: 'Send 2 again' }));
  expect(clicks()).toBeLessThanOrEqual(mostClicks);
  await expect(page.getByText('2 of 2')).toBeVisible();
  await expect.poll(() => receiver.notifications.length).toBe(2);
  await receiver.stop();
});
