import { AxeBuilder } from '@axe-core/playwright';
import { expect, test as base, type BrowserContext, type Locator, type Page } from '@playwright/test';
import { mkdirSync } from 'node:fs';
import type { IdentityProvider } from '../../test/support/identity-provider.js';
import { Installation } from '../../test/support/installation.js';
import { Receiver } from '../../test/support/receiver.js';
import { superuser } from '../../test/support/spawn-heraut.js';
import { embedded, real, type PreparedStack } from '../../test/support/stacks.js';
import { makeBadDay, type BadDay } from './bad-day.js';

export { expect } from '@playwright/test';

interface Fixtures {
  /**
   * Opens a page of the console, signed in as an administrator; at another address than the one of `heraut` where that
   * is given.
   */
  open: (path: string, url?: string) => Promise<Page>;
}

export interface WithProvider {
  provider: IdentityProvider;
  /** Addresses of its console. */
  at: (path: string) => string;
}

interface WorkerFixtures {
  /** Of the program: settings that differ from the usual ones of tests. */
  settings: Record<string, string>;
  stack: PreparedStack;
  /** The built program, one for all tests of a worker: tests make their own channels and subscriptions. */
  heraut: Installation;
  /** Receives what Heraut delivers. */
  receiver: Receiver;
  /** One more process of `heraut`, where users sign in at a provider. */
  withProvider: WithProvider;
  /** Something on every page. */
  badDay: BadDay;
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  settings: [{}, { scope: 'worker', option: true }],
  stack: [
    async ({}, use, { project }) => {
      const stack = await (project.metadata['stack'] === 'embedded' ? embedded : real).prepare();
      await use(stack);
      await stack.release();
    },
    { scope: 'worker' },
  ],
  heraut: [
    async ({ stack, settings }, use) => {
      // Rarer than in other tests: the program is there for minutes, mostly idle, and a page asks less often still.
      const heraut = await Installation.start(stack, {
        DISPATCH_INTERVAL_MS: '250',
        DATABASE_TIMEOUT: '5', // a replay of everything for a subscription waits for its horizon
        ...settings,
      });
      await use(heraut);
      await heraut.end();
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
  withProvider: [
    async ({ stack }, use) => {
      // Not for the workers that need none: it is large.
      const { IdentityProvider } = await import('../../test/support/identity-provider.js');
      const provider = await IdentityProvider.start(() => [at('callback')]);
      const heraut = await Installation.startWith(stack, ['api'], { ...provider.settings, OIDC_LABEL: 'Stad' });
      const at = (path: string) => `${heraut.api.url}/console/${path}`;
      await use({ provider, at });
      await heraut.end();
      await provider.stop();
    },
    { scope: 'worker' },
  ],
  badDay: [
    async ({ heraut }, use) => {
      const badDay = await makeBadDay(heraut, 10);
      await use(badDay);
      await badDay.end();
    },
    { scope: 'worker' },
  ],
  // A page still asks when its test ends. A handler that has then fetched the answer but not read it finds it gone, and
  // would fail the whole run with an error that belongs to no test.
  page: async ({ page }, use) => {
    await use(page);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  },
  open: async ({ page, heraut }, use) => {
    const urls = new Set([heraut.api.url]);
    const troubles = watch(page, urls);
    await signIn(page, heraut.api.url);
    await use(async (path, url = heraut.api.url) => {
      urls.add(url);
      await page.goto(`${url}/console/${path}`);
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      return page;
    });
    expect(troubles).toEqual([]);
  },
});

/**
 * Waits until `check` holds, and moves the page's clock forward meanwhile: what the page asks for every few seconds, it
 * asks for at once. The test calls `page.clock.install()` before it opens the page.
 * @param check an assertion with a short timeout, such as `atOnce`
 */
export async function asTimePasses(page: Page, check: () => Promise<void>): Promise<void> {
  await expect(async () => {
    await page.clock.fastForward(10_000);
    await check();
  }).toPass({ timeout: 60_000 });
}

/** The timeout of one assertion within `asTimePasses`. */
export const atOnce = { timeout: 1_000 };

/** With the superuser's secret, as where no provider is configured. The page has the cookie from then on. */
export async function signIn(page: Page, url: string): Promise<void> {
  const answer = await page.request.post(`${url}/console/session`, {
    data: superuser,
    headers: { 'X-Heraut-Console': '1' },
  });
  expect(answer.status()).toBe(200);
}

/** As a user with these roles. */
export async function signInAtProvider(
  context: BrowserContext,
  { provider, at }: WithProvider,
  roles: string[],
): Promise<Page> {
  provider.person = { sub: roles.join('-'), name: 'Jan de Vries', email: 'jan@example.org', roles };
  const page = await context.newPage();
  await page.goto(at('begin'));
  await expect(page.getByRole('button', { name: /^Jan de Vries \(jan@example\.org\), / })).toBeVisible();
  return page;
}

/** A violation of the policy, an exception, and a request that leaves for elsewhere fail the test. */
function watch(page: Page, urls: Set<string>): string[] {
  const troubles: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' && /Content Security Policy|Warning:|not wrapped/.test(message.text()))
      troubles.push(message.text());
  });
  page.on('pageerror', (error) => troubles.push(String(error)));
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol !== 'data:' && !urls.has(origin)) troubles.push(request.url());
  });
  return troubles;
}

/**
 * The demands on every state of every page: axe finds nothing, light or dark, and nothing is wider than a phone. Leaves
 * the page as it was. With LOOK=1 it also writes pictures to web/test-results/look/.
 */
export async function lookAt(page: Page, name: string): Promise<void> {
  const size = page.viewportSize()!;
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await expect(page.locator('html')).toHaveAttribute('data-mantine-color-scheme', colorScheme);
    await transitionsEnd(page);
    const { violations } = await (await axeIn(page, rules[colorScheme])).analyze();
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

/**
 * In the page itself, which has no frames: otherwise each analysis opens another page, to put the parts together. Its
 * script is half a megabyte; a page that has it is not given it again.
 */
async function axeIn(page: Page, runOnly: RunOnly): Promise<AxeBuilder> {
  const hasIt = await page.evaluate(() => 'axe' in window);
  // Of what is right only how much it is.
  return new AxeBuilder({ page, ...(hasIt && { axeSource: ';' }) })
    .setLegacyMode()
    .options({ runOnly, resultTypes: ['violations'] });
}

type RunOnly = NonNullable<Parameters<AxeBuilder['options']>[0]['runOnly']>;

/** Dark is the same page with other colours: there only the rules that look at colours can find something else. */
const rules: Record<'light' | 'dark', RunOnly> = {
  light: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] },
  dark: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] },
};

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

/**
 * Into a field with a number, which puts its caret in place a moment after it was typed into: what was selected by then
 * is not emptied.
 */
export async function retype(field: Locator, text: string): Promise<void> {
  await expect(async () => {
    await field.fill('');
    expect(await field.inputValue()).toBe('');
  }).toPass();
  await field.pressSequentially(text);
}

/** As the audit log has it. */
export const auditEntry = (id: number, action: string) => ({
  id: String(id),
  at: '2026-11-20T10:00:00.000Z',
  action,
  subject: 'retry-policy',
  client: null,
  via: null,
  address: null,
  requestId: null,
  before: null,
  after: null,
  changedSecrets: [],
});
