import { AxeBuilder } from '@axe-core/playwright';
import { expect, test as base, type Page } from '@playwright/test';
import { mkdirSync } from 'node:fs';
import { Installation } from '../../test/support/installation.js';
import { Receiver } from '../../test/support/receiver.js';
import { superuser } from '../../test/support/spawn-heraut.js';
import { embedded, real } from '../../test/support/stacks.js';

export { expect } from '@playwright/test';

interface Fixtures {
  /** Opens a page of the console, signed in as an administrator. */
  open: (path: string) => Promise<Page>;
}

interface WorkerFixtures {
  /** The built program, one for all tests of a worker: tests make their own channels and subscriptions. */
  heraut: Installation;
  /** Receives what Heraut delivers. */
  receiver: Receiver;
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  heraut: [
    async ({}, use, { project }) => {
      const prepared = await (project.metadata['stack'] === 'embedded' ? embedded : real).prepare();
      const heraut = await Installation.start(prepared);
      await use(heraut);
      await heraut.end();
      await prepared.release();
    },
    { scope: 'worker' },
  ],
  receiver: [
    async ({}, use) => {
      const receiver = await Receiver.start();
      await use(receiver);
      await receiver.stop();
    },
    { scope: 'worker' },
  ],
  open: async ({ page, heraut }, use) => {
    const troubles = watch(page, heraut.api.url);
    await signIn(page, heraut.api.url);
    await use(async (path) => {
      await page.goto(`${heraut.api.url}/console/${path}`);
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      return page;
    });
    expect(troubles).toEqual([]);
  },
});

/** With the superuser's secret, as where no provider is configured. The page has the cookie from then on. */
export async function signIn(page: Page, url: string): Promise<void> {
  const answer = await page.request.post(`${url}/console/session`, {
    data: superuser,
    headers: { 'X-Heraut-Console': '1' },
  });
  expect(answer.status()).toBe(200);
}

/** A violation of the policy, an exception, and a request that leaves for elsewhere fail the test. */
function watch(page: Page, url: string): string[] {
  const troubles: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' && /Content Security Policy|Warning:|not wrapped/.test(message.text()))
      troubles.push(message.text());
  });
  page.on('pageerror', (error) => troubles.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) troubles.push(request.url());
  });
  return troubles;
}

/**
 * What holds of every state of every page: axe finds nothing, light or dark, and nothing is wider than a phone. Leaves the page as it
 * was. With LOOK=1 it also writes pictures to web/test-results/look/.
 */
export async function lookAt(page: Page, name: string): Promise<void> {
  const size = page.viewportSize()!;
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await expect(page.locator('html')).toHaveAttribute('data-mantine-color-scheme', colorScheme);
    await transitionsEnd(page);
    const { violations } = await new AxeBuilder({ page })
      .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'])
      .analyze();
    const findings = violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => [id, target, failureSummary]),
    );
    expect(findings, `axe: ${name}, ${colorScheme}`).toEqual([]);
    await picture(page, `${name}-${colorScheme}`);
  }
  await page.setViewportSize({ width: 375, height: 740 });
  const overflow = () =>
    page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  await expect.poll(overflow, `${name} is wider than a phone`).toBeLessThanOrEqual(0);
  await picture(page, `${name}-phone`);
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme: 'light' });
}

/** A colour that is inherited reaches the last element some frames later. */
async function transitionsEnd(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const running = () => document.getAnimations().filter((each) => each instanceof CSSTransition);
    while (running().length > 0) {
      await Promise.allSettled(running().map((each) => each.finished));
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
  });
}

async function picture(page: Page, name: string): Promise<void> {
  if (!process.env['LOOK']) return;
  const directory = new URL('../test-results/look/', import.meta.url).pathname;
  mkdirSync(directory, { recursive: true });
  await page.screenshot({ path: `${directory}${name}.png` });
}
