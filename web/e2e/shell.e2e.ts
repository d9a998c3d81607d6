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
