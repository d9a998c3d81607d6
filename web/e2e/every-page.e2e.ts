import type { Locator, Page } from '@playwright/test';
import { randomUUID } from 'node:crypto';
import { expect, lookAt, signInAtProvider, test } from './harness.js';
import { goTo, placesOf, routes, type Place } from './places.js';
import { tabThrough } from './tab-through.js';

test('the list of pages is whole', ({ badDay }) => {
  expect(routes.length).toBeGreaterThan(15);
  expect(Object.keys(placesOf(badDay)).toSorted()).toEqual(routes.toSorted());
});

/** A test for each, so that they run side by side. */
const parts = 4;
for (let part = 0; part < parts; part++)
  test(`axe finds nothing on any page, light or dark; each fits on a phone and is reached by keyboard (${part + 1} of ${parts})`, async ({
    open,
    badDay,
  }) => {
    const page = await open('audit');
    const places = Object.values(placesOf(badDay)).flat();
    for (const place of places.slice((part * places.length) / parts, ((part + 1) * places.length) / parts)) {
      await goTo(page, place);
      await lookAt(page, place.at);
      await tabThrough(page, place.at);
    }
  });

test('an address that is no page says so within the frame of every page, and leads back', async ({ open }) => {
  const page = await open('nowhere/at/all');
  await expect(page.getByRole('main').getByRole('heading', { level: 1, name: 'There is no such page' })).toBeVisible();
  await expect(page).toHaveTitle('There is no such page · Heraut');
  await expect(page.getByRole('navigation', { name: 'Pages' })).toBeVisible();
  await lookAt(page, 'no-page');
  await tabThrough(page, 'no-page');
  await page.getByRole('link', { name: 'To the overview' }).click();
  await expect(page).toHaveURL(/\/console\/(overview|welcome)$/); // the second where nothing is there yet
});

test('on a phone the pages are in a menu', async ({ open }) => {
  const page = await open('audit');
  await page.setViewportSize({ width: 375, height: 740 });
  const link = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Channels' });
  await expect(link).not.toBeInViewport();
  await page.getByRole('button', { name: 'Menu' }).click();
  await lookAt(page, 'menu');
  await link.click();
  await expect(page.getByRole('heading', { level: 1, name: 'Channels' })).toBeVisible();
  await expect(link).not.toBeInViewport();
});

test('on a phone, Tab stops only at what is seen, and the button of the menu says whether that is open', async ({
  open,
}) => {
  const page = await open('audit');
  await page.setViewportSize({ width: 375, height: 740 });
  const menu = page.getByRole('button', { name: 'Menu' });
  await expect(menu).toHaveAttribute('aria-expanded', 'false');
  const focused = page.locator(':focus');
  await menu.focus();
  const stops: string[] = [];
  const isIn = (place: string) => focused.evaluate((each, within) => each.closest(within) !== null, place);
  while (!(await isIn('main'))) {
    expect(stops.length, stops.join('\n')).toBeLessThan(10);
    stops.push(await focused.evaluate((each) => each.outerHTML.slice(0, 200)));
    await expect(focused).toBeInViewport();
    await page.keyboard.press('Tab');
  }
  await menu.press('Enter');
  await expect(menu).toHaveAttribute('aria-expanded', 'true');
  const opened = page.locator(`[id="${await menu.getAttribute('aria-controls')}"]`);
  await expect(opened.getByRole('link', { name: 'Overview' })).toBeInViewport();
  for (const _ of stops) await page.keyboard.press('Tab');
  expect(await isIn('nav')).toBe(true);
  await expect(focused).toBeInViewport();
  // The page beneath it is out of reach.
  await expect(page.getByRole('main')).toHaveCount(0);
  // To the page that is there already: the link is gone, and the focus on it.
  await opened.getByRole('link', { name: 'Audit' }).press('Enter');
  await expect(menu).toHaveAttribute('aria-expanded', 'false');
  await expect(page.getByRole('main')).toBeFocused();
});

test('each list has rows that can be seen whole where the window is low: magnified, or on a phone held sideways', async ({
  open,
  badDay: _badDay,
}) => {
  const page = await open('audit');
  for (const list of ['notifications', 'subscriptions', 'audit', 'channels', 'replays'])
    for (const size of [
      { width: 683, height: 310 },
      { width: 320, height: 256 },
    ]) {
      await page.setViewportSize(size);
      await open(list);
      const row = page.locator('[data-index="0"]').first();
      await row.scrollIntoViewIfNeeded();
      const at = await row.evaluate((each) => {
        const { left, top, bottom } = each.getBoundingClientRect();
        const isSeen = (y: number) => each.contains(document.elementFromPoint(left + 2, y));
        return { isTopSeen: isSeen(top + 2), isBottomSeen: isSeen(bottom - 2) };
      });
      expect(at, `${list} at ${size.width}`).toEqual({ isTopSeen: true, isBottomSeen: true });
    }
});

test('each list tells a screen reader how much it has found, or that it has nothing, and does so once', async ({
  open,
  badDay: _badDay,
}) => {
  const page = await open('audit');
  for (const [list, nothing] of [
    ['notifications', 'notifications?channel=none'],
    ['channels', 'channels?q=none'],
    ['applications', 'applications?q=none'],
    ['audit', 'audit?client=none'],
    ['replays', 'replays?state=paused'],
    ['alerts?tab=past', 'alerts?tab=past&rule=ledger-disk'],
    ['dead-letters', 'dead-letters?channel=none'],
  ] as const) {
    await open(list);
    const status = page
      .getByRole('main')
      .getByRole('status')
      .filter({ hasText: /^(at least )?[\d,]+ found$|^No .* yet$/ });
    await expect(status, list).toHaveCount(1);
    // It is this one that says the next thing as well: one that comes with its text is not read out.
    await status.evaluate((each) => (each.id = 'marked'));
    await page.evaluate((address) => history.pushState({}, '', address), `/console/${nothing}`);
    const title = page.getByRole('main').getByRole('heading', { level: 2, name: /^(No|Nothing) / });
    await expect(title, nothing).toBeVisible();
    await expect(page.locator('#marked'), nothing).toHaveText((await title.textContent())!);
  }
});

test('dead letters are not read out each time that they are counted anew', async ({ open, badDay: _badDay }) => {
  const page = await open('dead-letters');
  await expect(page.getByText(/as of \d/)).toBeVisible();
  await expect(page.locator('[aria-live], [role=status]').filter({ hasText: /as of/ })).toHaveCount(0);
});

/** @returns the list that each text from now on is added to. */
async function toldIn(status: Locator): Promise<() => Promise<string[]>> {
  const told = await status.evaluateHandle((each) => {
    const texts: string[] = [];
    new MutationObserver(() => texts.push(each.textContent)).observe(each, {
      childList: true,
      characterData: true,
      subtree: true,
    });
    return texts;
  });
  return () => told.jsonValue();
}

test('a screen reader is told how much a search has found, and not how much each letter of it', async ({
  open,
  page,
  heraut,
}) => {
  const name = `typed-${randomUUID().slice(0, 8)}`;
  for (const end of ['', 'x', 'xy'])
    await heraut.api.call('POST', '/admin/v1/channels', { body: { name: name + end } });
  await page.clock.install();
  await open(`channels?q=${name}`);
  const status = page
    .getByRole('main')
    .getByRole('status')
    .filter({ hasText: /found$/ });
  await expect(status).toHaveText('3 found');
  const told = await toldIn(status);
  const field = page.getByRole('main').getByRole('textbox');
  const names = page.getByRole('main').getByRole('link', { name });
  await page.clock.pauseAt(Date.now() + 60_000);
  await field.press('End');
  for (const [letter, left] of [
    ['x', 2],
    ['y', 1],
  ] as const) {
    await field.press(letter);
    await expect(names).toHaveCount(left);
    await page.clock.runFor(900);
  }
  expect(await told()).toEqual([]);
  await page.clock.resume();
  await expect(status).toHaveText('1 found');
  expect(await told()).toEqual(['1 found']);
});

test('dead letters that become more are counted every ten seconds, and read out every minute', async ({
  open,
  page,
  badDay: _badDay,
}) => {
  let count = 1_001;
  await page.route('**/admin/v1/dead-letters*', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), count } });
  });
  await page.clock.install();
  await open('dead-letters');
  const status = page
    .getByRole('main')
    .getByRole('status')
    .filter({ hasText: /found$/ });
  await expect(status).toHaveText('1,001 found');
  const told = await toldIn(status);
  await page.clock.pauseAt(Date.now() + 120_000);
  /** Nothing else lets the clock of the page go on. */
  const soon = (check: () => Promise<void>) =>
    expect(async () => {
      await page.clock.runFor(100);
      await check();
    }).toPass({ timeout: 60_000 });
  const countAnew = async () => {
    count += 1;
    const counted = page.waitForResponse('**/admin/v1/dead-letters*');
    await page.clock.runFor(11_000);
    await counted;
    const shown = page.getByText(`${count.toLocaleString('en')} dead letters`).first();
    await soon(() => expect(shown).toBeVisible({ timeout: 100 }));
  };
  await countAnew();
  await soon(() => expect(status).toHaveText('1,002 found', { timeout: 100 }));
  await countAnew();
  await countAnew();
  await countAnew();
  expect(await told()).toEqual(['1,002 found']);
  await page.clock.runFor(60_000);
  await expect(status).toHaveText('1,005 found');
  expect(await told()).toEqual(['1,002 found', '1,005 found']);
});

test('notifications that are new are counted every five seconds, and read out every minute', async ({
  open,
  page,
  heraut,
}) => {
  const channel = await heraut.createChannel();
  await heraut.publish(channel);
  await page.clock.install();
  await open(`notifications?channel=${channel}`);
  await expect(page.getByText('1 found', { exact: true })).toHaveCount(1);
  await page.clock.pauseAt(Date.now() + 120_000);
  const told = page
    .getByRole('main')
    .getByRole('status')
    .filter({ hasText: /new notification/ });
  const becomes = async (count: number) => {
    await heraut.publish(channel);
    const announced = page.getByRole('button', { name: new RegExp(`^${count} new notification`) });
    const looked = page.waitForResponse('**/admin/v1/notifications?*');
    await page.clock.runFor(6_000);
    await looked;
    await expect(async () => {
      await page.clock.runFor(100);
      await expect(announced).toBeVisible({ timeout: 100 });
    }).toPass({ timeout: 60_000 });
  };
  await becomes(1);
  await page.clock.runFor(1_100);
  await expect(told).toHaveText('1 new notification');
  await becomes(2);
  await becomes(3);
  await expect(told).toHaveText('1 new notification');
  await page.clock.runFor(60_000);
  await expect(told).toHaveText('3 new notifications');
});

test('what is wrong with a page is found', async ({ open }) => {
  const page = await open('channels');
  const changed = (change: (main: HTMLElement) => void) => page.locator('main').evaluate(change);
  // A red that once was there: 3.84 on white, enough in the dark.
  await changed((main) => (main.querySelector('h1')!.style.cssText = 'color: #f03e3e; font-size: 14px'));
  await expect(lookAt(page, 'red')).rejects.toThrow(/axe: red, light[^]*color contrast of 3\.84/);
  await changed((main) => (main.querySelector('h1')!.style.color = '#444'));
  await expect(lookAt(page, 'grey')).rejects.toThrow(/axe: grey, dark[^]*color-contrast/);
  await changed((main) => {
    main.querySelector('h1')!.style.cssText = '';
    main.querySelector('button')!.tabIndex = -1;
  });
  await expect(tabThrough(page, 'button')).rejects.toThrow(/button: out of reach of Tab/);
  await changed((main) => {
    main.querySelector('button')!.removeAttribute('tabindex');
    main.querySelector('button')!.style.outline = 'none';
  });
  await expect(tabThrough(page, 'button')).rejects.toThrow(/button: the focus is not seen/);
});

/** Buttons of pages that only look, which everybody may. */
const forAll = [
  / (Copy|Copy the id|Copy the exact text|Copy code|Download)$/,
  /^\/tail Pause$/,
  /^\/dead-letters Show the dead letters of /,
  /^\/replays\/new Count (what this means|again)$/,
  /^\/settings Load what is there$/,
  /^\/publish (Add a characteristic|When, and other terms|Clear the form)$/,
  / Of the last hour$/,
  /^\/(notifications|audit|alerts) Read again$/,
  /^\/audit Clear the filters$/,
  // While no alert is open.
  /^\/alerts To the history$/,
];
/** And those that send again, cancel, pause and try. */
const forOperators = [
  / (Send again|Cancel|Pause|Send a test)$/,
  /^\/subscriptions\/\$id (More actions|Resume|Drop what is held)$/,
  /^\/dead-letters (Send all again|Close all|Close)$/,
  /^\/publish Publish$/,
];
/** Only while an endpoint is open, or a delivery waits. */
const forOperatorsAtTimes = [/^\/endpoints Reset /, / (Reset the circuit breaker|Try now)$/];

test('a viewer and an operator are offered what they may do, and read every page', async ({
  context,
  withProvider,
  badDay,
}) => {
  const places = placesOf(badDay);
  const beyond = (offered: string[], allowed: RegExp[]) =>
    offered.filter((name) => !allowed.some((each) => each.test(name)));
  const viewer = await signInAtProvider(context, withProvider, ['viewer']);
  expect(beyond(await offeredTo(viewer, places), forAll)).toEqual([]);
  await viewer.close();
  await context.clearCookies();
  const offered = await offeredTo(await signInAtProvider(context, withProvider, ['operator']), places);
  expect(beyond(offered, [...forAll, ...forOperators, ...forOperatorsAtTimes])).toEqual([]);
  // All of them were there to be seen.
  expect(forOperators.filter((each) => !offered.some((name) => each.test(name)))).toEqual([]);
});

/** Each button of each page, and each item of its menu, that can be pressed: the route and the name. */
async function offeredTo(page: Page, places: Record<string, Place[]>): Promise<string[]> {
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(`${response.request().method()} ${response.url()}`);
  });
  const offered = new Set<string>();
  for (const [route, states] of Object.entries(places))
    for (const place of states) {
      const note = async (part: string) => {
        const snapshot = await page.locator(part).ariaSnapshot();
        for (const [, name, state] of snapshot.matchAll(/- (?:button|menuitem|switch) "((?:[^"\\]|\\.)*)"(.*)$/gm))
          if (!state!.includes('[disabled]')) offered.add(`${route} ${name}`);
      };
      await goTo(page, place);
      await note('main');
      const menu = page.locator('main button[aria-haspopup=menu]:enabled');
      if ((await menu.count()) === 0) continue;
      // Clicked while the page is still being drawn, it may be drawn once more, and closed.
      await expect(async () => {
        if (!(await page.locator('[role=menu]').isVisible())) await menu.first().click({ timeout: 1000 });
        await expect(page.locator('[role=menu]')).toBeVisible({ timeout: 1000 });
      }).toPass();
      await note('[role=menu]');
      await page.keyboard.press('Escape');
    }
  expect(refused).toEqual([]);
  return [...offered];
}
