import type { Page } from '@playwright/test';
import { superuser } from '../../test/support/spawn-heraut.js';
import { expect, lookAt, signInAtProvider, test } from './harness.js';

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });
const userMenu = (page: Page, name: RegExp | string) => page.getByRole('button', { name });

/** As a script of the page would do it, whatever the page shows. */
const callFrom = (page: Page, method: string, path: string, body?: object) =>
  page.evaluate(
    async ([verb, url, text]) => {
      const headers = { 'X-Heraut-Console': '1', 'Content-Type': 'application/json' };
      const response = await fetch(new URL(url!, document.baseURI), { method: verb!, headers, body: text });
      const answer = await response.text();
      return [response.status, answer === '' ? undefined : (JSON.parse(answer) as { code?: string }).code];
    },
    [method, path, body && JSON.stringify(body)],
  );

/** On the page of endpoints. @returns to be called when the session is another one */
async function typeIn(page: Page) {
  const field = page.getByRole('searchbox', { name: 'Find an endpoint' });
  await field.fill('typed before');
  // Of the element itself: another one in its place would show the same text, which is in the address.
  await field.evaluate((element) => void (element.dataset['kept'] = 'yes'));
  return async () => {
    await expect(field).toHaveValue('typed before');
    await expect(field).toHaveAttribute('data-kept', 'yes');
    await expect(field).toBeFocused();
  };
}

/** From another tab of the browser. */
const comeBackTo = (page: Page) => page.evaluate(() => void dispatchEvent(new Event('visibilitychange')));

test('who follows a link is led to the provider and back to that page, and gets what the role allows', async ({
  page,
  withProvider,
}) => {
  const { provider, at } = withProvider;
  provider.person = { sub: 'jan', name: 'Jan de Vries', email: 'jan@example.org', roles: ['viewer'] };
  await page.goto(at('replays?state=done'));
  const button = page.getByRole('link', { name: 'Sign in with Stad' });
  await expect(button).toBeVisible();
  await lookAt(page, 'sign-in-provider');
  await button.press('Enter');
  await expect(page).toHaveURL(at('replays?state=done'));
  await expect(heading(page, 'Replays')).toBeVisible();
  const newReplay = page.getByRole('link', { name: 'New replay' });
  await expect(newReplay).toHaveAttribute('data-disabled', 'true');
  expect(await callFrom(page, 'POST', '../admin/v1/replays', {})).toEqual([403, 'role-too-low']);

  await userMenu(page, 'Jan de Vries (jan@example.org), viewer').click();
  await expect(page.getByRole('menuitem', { name: 'End all sessions …' })).toHaveCount(0);
  await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
  await expect(button).toBeVisible();
  await page.goBack();
  await expect(button).toBeVisible();
  await page.goForward();
  await button.click();
  await expect(userMenu(page, /viewer$/)).toBeVisible();
  expect(provider.prompts.slice(-2)).toEqual([undefined, 'login']);
});

test('who has no role is told so, and can try again with one', async ({ page, withProvider }) => {
  const { provider, at } = withProvider;
  provider.person = { sub: 'piet', name: 'Piet', roles: [] };
  await page.goto(at('begin?to=replays'));
  await expect(page.getByRole('alert')).toContainText('has given you no role for Heraut');
  await lookAt(page, 'sign-in-no-role');
  provider.person.roles = ['operator'];
  await page.getByRole('link', { name: 'Sign in with Stad' }).click();
  await expect(heading(page, 'Replays')).toBeVisible();
  await expect(page.getByRole('link', { name: 'New replay' })).not.toHaveAttribute('data-disabled', 'true');
});

test('a session that ends while somebody types leaves the page as it is, until the user is back from a new tab', async ({
  context,
  withProvider,
}) => {
  const page = await signInAtProvider(context, withProvider, ['operator']);
  await page.goto(withProvider.at('endpoints'));
  const isKept = await typeIn(page);
  await callFrom(page, 'DELETE', 'session');
  await comeBackTo(page);
  const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
  await expect(dialog).toBeVisible();
  await lookAt(page, 'session-over-provider');
  const opening = context.waitForEvent('page');
  await dialog.getByRole('link', { name: 'Sign in with Stad' }).click();
  await expect(heading(await opening, 'You are signed in')).toBeVisible();
  await lookAt(await opening, 'sign-in-done');
  await expect(dialog).toHaveCount(0);
  await isKept();
});

test('a form that is saved after the session has ended asks to sign in, and is saved when that is done', async ({
  context,
  withProvider,
}) => {
  const page = await signInAtProvider(context, withProvider, ['administrator']);
  await page.goto(withProvider.at('settings'));
  const retries = page.getByRole('main').getByRole('textbox').first();
  await retries.fill('5');
  await callFrom(page, 'DELETE', 'session');
  const save = page.getByRole('button', { name: 'Save', exact: true });
  await save.click();
  const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
  await expect(dialog).toBeVisible();
  await dialog.getByRole('link', { name: 'Sign in with Stad' }).click();
  await expect(dialog).toHaveCount(0);
  await expect(retries).toHaveValue('5');
  await save.click();
  await expect(page.getByRole('button', { name: 'Discard changes' })).toHaveCount(0);
  await retries.fill('7');
  await save.click();
  await expect(page.getByRole('button', { name: 'Discard changes' })).toHaveCount(0);
});

test('a sign-out everywhere reaches every browser of the user; an administrator ends all sessions', async ({
  browser,
  withProvider,
}) => {
  const contexts = await Promise.all([1, 2, 3].map(() => browser.newContext()));
  const [one, other, administrator] = [
    await signInAtProvider(contexts[0]!, withProvider, ['viewer']),
    await signInAtProvider(contexts[1]!, withProvider, ['viewer']),
    await signInAtProvider(contexts[2]!, withProvider, ['administrator']),
  ];
  await userMenu(one, /viewer$/).click();
  await one.getByRole('menuitem', { name: 'Sign out everywhere' }).click();
  await expect(heading(one, 'Heraut')).toBeVisible();
  await other.reload();
  await expect(other.getByRole('link', { name: 'Sign in with Stad' })).toBeVisible();

  await administrator.goto(withProvider.at('endpoints'));
  await userMenu(administrator, /administrator$/).click();
  await administrator.getByRole('menuitem', { name: 'End all sessions …' }).click();
  const dialog = administrator.getByRole('dialog', { name: 'End the sessions of all users?' });
  await lookAt(administrator, 'end-all-sessions');
  await dialog.getByRole('button', { name: 'End all sessions' }).click();
  await expect(administrator.getByRole('link', { name: 'Sign in with Stad' })).toBeVisible();
  for (const context of contexts) await context.close();
});

test('what somebody types into Publish stays over a reload, and is not there for the next user of the tab', async ({
  context,
  heraut,
  withProvider,
}) => {
  await heraut.createChannel();
  const { provider, at } = withProvider;
  const page = await signInAtProvider(context, withProvider, ['operator']);
  const next = { sub: 'piet', name: 'Piet Bakker', email: 'piet@example.org', roles: ['operator'] };
  const mainObject = page.getByRole('textbox', { name: 'Main object' });
  const button = page.getByRole('link', { name: 'Sign in with Stad' });
  const type = async (typed: string) => {
    await page.goto(at('publish'));
    await mainObject.fill(typed);
    await page.reload();
    await expect(mainObject).toHaveValue(typed);
  };
  await type('https://cases.example.org/of-jan');
  await userMenu(page, /operator$/).click();
  await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
  await expect(button).toBeVisible();
  expect(await page.evaluate(() => JSON.stringify(sessionStorage))).not.toContain('of-jan');
  const jan = provider.person!;
  provider.person = next;
  await button.click();
  await expect(userMenu(page, /^Piet Bakker/)).toBeVisible();
  await page.goto(at('publish'));
  await expect(mainObject).toHaveValue('');

  // Where the session ends, and another one signs in over the page.
  await type('https://cases.example.org/of-piet');
  await context.clearCookies(); // also those of the provider, which knows who was there
  await comeBackTo(page);
  provider.person = jan;
  await page
    .getByRole('dialog', { name: 'Your session has ended' })
    .getByRole('link', { name: /^Sign in/ })
    .click();
  await expect(userMenu(page, /^Jan de Vries/)).toBeVisible();
  await expect(mainObject).toHaveValue('');

  // Or after a reload.
  await type('https://cases.example.org/of-jan');
  await context.clearCookies();
  await page.reload();
  provider.person = next;
  await button.click();
  await expect(userMenu(page, /^Piet Bakker/)).toBeVisible();
  await expect(mainObject).toHaveValue('');
});

test('without a provider the secret of a superuser signs in, also again in place', async ({ page, heraut }) => {
  await page.goto(`${heraut.api.url}/console/endpoints`);
  const signIn = async (secret: string) => {
    await page.getByRole('textbox', { name: 'Client id' }).fill(superuser.clientId);
    await page.getByRole('textbox', { name: 'Secret' }).fill(secret);
    await page.keyboard.press('Enter');
  };
  await signIn('a wrong secret');
  await expect(page.getByRole('alert')).toContainText('No superuser has this client id and this secret.');
  await lookAt(page, 'sign-in-secret');
  await signIn(superuser.secret);
  await expect(heading(page, 'Endpoints')).toBeVisible();

  const isKept = await typeIn(page);
  await callFrom(page, 'DELETE', 'session');
  await comeBackTo(page);
  const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
  await expect(dialog).toBeVisible();
  await lookAt(page, 'session-over-secret');
  await signIn(superuser.secret);
  await expect(dialog).toHaveCount(0);
  await isKept();
});

test('a ticket signs in by one click, and says so when it was used', async ({ page, context, heraut }) => {
  const { body } = await heraut.api.call('POST', '/admin/v1/sign-in-tickets');
  const { url } = body as { url: string };
  await page.goto(url);
  await expect(userMenu(page, `${superuser.clientId}, administrator`)).toBeVisible();
  await context.clearCookies();
  await page.goto(url);
  await expect(page.getByRole('alert')).toContainText('This link was used before');
});
