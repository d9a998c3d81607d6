import { Installation } from '../../test/support/installation.js';
import { answer } from '../../test/support/receiver.js';
import { embedded } from '../../test/support/stacks.js';
import { expect, lookAt, signIn, test } from './harness.js';

// As `npm start` runs it: nothing is in it, and a callback must prove itself.
test('from an empty installation to a delivered notification, step by step, one of them with curl', async ({
  page,
  receiver,
}) => {
  const prepared = await embedded.prepare();
  const heraut = await Installation.start(prepared, { TEST_CALLBACK_AUTH: 'true' });
  try {
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
    await page.getByRole('button', { name: 'Subscribe' }).click();
    await expect(page.getByText('npm run receiver starts the small one')).toBeVisible();
    await expect(callback).toHaveValue('http://127.0.0.1:9/nothing-listens-here');
    await lookAt(page, 'welcome-refused');
    await callback.fill(receiver.url);
    await page.getByRole('button', { name: 'Subscribe' }).click();
    await expect(page.getByRole('status').getByText('2 of 4 done')).toBeVisible();

    receiver.next(answer(500));
    await page.getByRole('button', { name: 'Publish an example' }).click();
    await expect(page.getByRole('status').getByText('3 of 4 done')).toBeVisible();
    await expect(page.getByText(/one attempt · .*500/)).toBeVisible();
    // With curl, while the page looks on.
    await heraut.publish('demo');
    await expect(page.getByRole('status').getByText('A notification was delivered')).toBeVisible();
    await lookAt(page, 'welcome-done');
    await page.getByRole('link', { name: 'Open the notification' }).click();
    await expect(page).toHaveURL(/\/notifications\/[0-9a-f-]{36}$/);
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Overview' }).click();
    await expect(page.getByRole('heading', { level: 1, name: 'Overview' })).toBeVisible();
  } finally {
    await heraut.end();
    await prepared.release();
  }
});
