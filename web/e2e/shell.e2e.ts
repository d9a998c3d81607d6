import { expect, lookAt, test } from './harness.js';

test('every page of the navigation opens by its link, and at its address', async ({ open }) => {
  const page = await open('overview');
  await lookAt(page, 'shell');
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

test('an address that is no page says so and leads back', async ({ open }) => {
  const page = await open('overview');
  await page.goto(page.url().replace('overview', 'nowhere/at/all'));
  await page.getByRole('link', { name: 'To the overview' }).click();
  await expect(page).toHaveURL(/\/console\/overview$/);
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
});

test('the first load is less than 250 KB of script', async ({ open, page }) => {
  const sizes = new Map<string, number>();
  page.on('response', (response) => {
    if (response.request().resourceType() === 'script')
      sizes.set(response.url(), Number(response.headers()['content-length']));
  });
  await open('overview?welcome=no');
  await page.waitForLoadState('networkidle');
  expect(sizes.size).toBeGreaterThan(2);
  // As they are sent: compressed. NaN, where one is not, is no number below it.
  expect([...sizes.values()].reduce((sum, size) => sum + size, 0)).toBeLessThan(250_000);
});
