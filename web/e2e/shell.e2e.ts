import { expect, lookAt, retype, signIn, test } from './harness.js';

test('every page of the navigation opens by its link, and at its address', async ({ open, heraut }) => {
  // While nothing was accepted, the overview leads on to the first steps.
  await heraut.publish(await heraut.createChannel());
  const page = await open('overview');
  const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
  const names = await links.allTextContents();
  expect(names.length).toBeGreaterThan(10);
  for (const name of names) {
    await links.filter({ hasText: name }).click();
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await expect(links.filter({ hasText: name })).toHaveAttribute('aria-current', 'page');
  }
  await page.reload();
  await expect(links.last()).toHaveAttribute('aria-current', 'page');
});

test('the console speaks Dutch to those who want it, and remembers', async ({ open }) => {
  const page = await open('overview');
  await page.getByRole('button', { name: 'test-superuser, administrator' }).click();
  await page.getByRole('menuitem', { name: 'Nederlands' }).click();
  await expect(
    page.getByRole('navigation', { name: "Pagina's" }).getByRole('link', { name: 'Onbestelbaar' }),
  ).toBeVisible();
  await page.reload();
  await expect(page.locator('html')).toHaveAttribute('lang', 'nl');
  // A comma before a fraction, and a point is understood as well.
  await open('settings');
  const part = page.getByLabel('Willekeurig deel');
  await retype(part, '0,3');
  await expect(part).toHaveValue('0,3');
  await expect(page.getByRole('button', { name: 'Opslaan', exact: true })).toBeEnabled();
  await retype(part, '0.4');
  await expect(part).toHaveValue('0,4');
  await page.getByRole('button', { name: 'Wijzigingen verwerpen' }).click();
  // Also the name of a button that is only a cross.
  await open('channels?new=1');
  await page.getByRole('dialog').getByRole('button', { name: 'Sluit dit venster' }).click();
  await expect(page.getByRole('dialog')).toHaveCount(0);
});

test('the first load is less than 250 KB of script', async ({ heraut, browser }) => {
  // One that has nothing of the console yet.
  const context = await browser.newContext();
  const page = await context.newPage();
  await signIn(page, heraut.api.url);
  const sizes = new Map<string, number>();
  page.on('response', (response) => {
    if (response.request().resourceType() === 'script')
      sizes.set(response.url(), Number(response.headers()['content-length']));
  });
  await page.goto(`${heraut.api.url}/console/overview?welcome=no`);
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await page.waitForLoadState('networkidle');
  expect(sizes.size).toBeGreaterThan(2);
  // As they are sent: compressed. NaN, where one is not, is no number below it.
  expect([...sizes.values()].reduce((sum, size) => sum + size, 0)).toBeLessThan(250_000);
  await context.close();
});

test('a filter in the address of a list that is not understood is refused, and named', async ({ open }) => {
  for (const [address, name, field] of [
    ['subscriptions?state=pausd', 'state', 'State'],
    ['replays?state=runing', 'state', 'State'],
    ['replays?kind=typo', 'kind', 'Kind'],
    ['alerts?tab=past&rule=typo', 'rule', 'Rule'],
    ['alerts?tab=past&subject=abc', 'rule', undefined],
  ] as const) {
    const page = await open(address);
    await expect(page.getByRole('alert').first()).toContainText(name);
    await expect(page.getByRole('table')).toHaveCount(0);
    if (field !== undefined)
      await expect(page.getByRole('combobox', { name: field })).toHaveValue(address.split('=').at(-1)!);
    await lookAt(page, `not-understood-${address.split('?')[0]}`);
  }
});
