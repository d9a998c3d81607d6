import type { Route } from '@playwright/test';
import { answer } from '../../test/support/receiver.js';
import { expect, lookAt, signIn, test } from './harness.js';

// As `npm start` runs it: one process with the embedded database, nothing in it, and a callback must prove itself. Each
// subscription gets a signing key as well.
test.use({ settings: { TEST_CALLBACK_AUTH: 'true', SIGN_BY_DEFAULT: 'true' } });
test.describe.configure({ mode: 'default' });

test('from an empty installation to a delivered notification, step by step, one of them with curl', async ({
  page,
  heraut,
  receiver,
}) => {
  await page.clock.install();
  await signIn(page, heraut.api.url);
  await page.goto(`${heraut.api.url}/console/`);
  await expect(page.getByRole('heading', { level: 1, name: 'First steps' })).toBeVisible();
  await expect(page.getByRole('status').getByText('0 of 4 done')).toBeVisible();
  await lookAt(page, 'welcome-empty');

  await page.getByRole('combobox', { name: 'Names to filter on' }).fill('kind');
  await page.getByRole('button', { name: 'Make the channel' }).click();
  await expect(page.getByText('There is the channel demo')).toBeVisible();

  const callback = page.getByRole('textbox', { name: 'Address of the receiver' });
  await expect(callback).toHaveValue('http://127.0.0.1:8001/webhook');
  await callback.fill('http://127.0.0.1:9/nothing-listens-here');
  // The refusal comes late.
  const late = async (route: Route) => {
    const response = await route.fetch();
    await page.clock.fastForward(100_000);
    await route.fulfill({ response });
  };
  await page.route(/\/admin\/v1\/subscriptions$/, late, { times: 1 });
  await page.getByRole('button', { name: 'Subscribe' }).click();
  await expect(page.getByText('npm run receiver starts the small one')).toBeVisible();
  await expect(callback).toHaveValue('http://127.0.0.1:9/nothing-listens-here');
  await lookAt(page, 'welcome-refused');
  await callback.fill(receiver.url);
  await page.getByRole('button', { name: 'Subscribe' }).click();
  const twoDone = page.getByText('2 of 4 done');
  await expect(twoDone).toBeVisible();
  // Over the next step: its own is done.
  await expect(page.getByRole('dialog', { name: 'Copy this secret now' }).getByText(/^whsec_/)).toBeVisible();
  await page.getByRole('button', { name: 'I have copied it' }).press('Enter');
  await expect(twoDone).toBeFocused();

  receiver.next(answer(500));
  await page.getByRole('button', { name: 'Publish an example' }).click();
  await expect(page.getByRole('status').getByText('3 of 4 done')).toBeVisible();
  await expect(page.getByText(/one attempt · .*500/)).toBeVisible();
  // With curl, while the page looks on.
  await heraut.publish('demo');
  await expect(page.getByRole('status').getByText('A notification was delivered')).toBeVisible();
  await lookAt(page, 'welcome-done');
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Overview' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Overview' })).toBeVisible();
  await page.goBack();
  await page.getByRole('link', { name: 'Open the notification' }).click();
  await expect(page.getByRole('heading', { level: 1, name: /^create / })).toBeVisible();
});

test('the way of an operator from a subscription to what it missed', async ({ open, heraut, receiver }) => {
  const channel = await heraut.createChannel(['kind']);
  const page = await open('subscriptions');
  const to = (name: string) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
  await page.getByRole('button', { name: 'New subscription' }).first().click();
  const form = page.getByRole('dialog', { name: 'New subscription' });
  await form.getByLabel('Application').fill('test-superuser');
  const url = `${receiver.url}/${channel}`;
  await form.getByLabel('Callback URL').fill(url);
  await form.getByRole('combobox', { name: 'Channel' }).fill(channel);
  await page.getByRole('option', { name: channel }).click();
  await form.getByLabel(/^Authorization header/).fill('Bearer of-the-receiver');
  await form.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('button', { name: 'I have copied it' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(url);
  const policy = `/admin/v1/subscriptions/${page.url().split('/').at(-1)}/retry-policy`;
  expect((await heraut.api.call('PUT', policy, { body: { maxRetries: 0 } })).status).toBe(200);

  await to('Publish');
  await page.getByRole('combobox', { name: 'Channel' }).fill(channel);
  await page.getByRole('option', { name: channel }).click();
  for (const [name, value] of Object.entries({
    'Main object': 'https://cases.example.org/1',
    'URL of the resource': 'https://cases.example.org/1',
    'Resource resource': 'status',
    kind: 'permit',
  }))
    await page.getByRole('textbox', { name, exact: name === 'Resource resource' }).fill(value);
  receiver.next(answer(500, {}, 'after a deploy'));
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  await page.getByRole('link', { name: 'Everything about this notification' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'create status' })).toBeVisible();
  await expect(page.getByRole('region', { name: 'Attempt 1' })).toContainText('HTTP 500');

  await to('Dead letters');
  const section = page.getByRole('region', { name: url.replace('http://', '') });
  await section.getByRole('button', { name: 'Send again' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Send 1 again' }).click();
  await expect(page.getByText('1 of 1')).toBeVisible();

  await to('Notifications');
  const row = page.getByRole('row').filter({ hasText: channel });
  await expect(row).toContainText('delivered');
  await row.getByRole('link', { name: 'create status' }).click();
  await expect(page.getByRole('region', { name: 'Attempt 2' })).toContainText('HTTP 204');

  await to('Live tail');
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await heraut.publish(channel, { kenmerken: { kind: 'permit' } });
  await expect(page.getByRole('table', { name: 'Events' }).getByText('accepted', { exact: true })).toBeVisible();

  await to('Overview');
  await expect(page.getByRole('link', { name: /^Accepted: 0\.\d+ per second/ })).toBeVisible();
  await to('Settings');
  await page.getByRole('tab', { name: 'Installation' }).click();
  await expect(page.getByRole('row').filter({ hasText: 'api, worker, dispatcher' })).toContainText('alive');
});
