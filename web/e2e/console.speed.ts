import type { Browser, Page } from '@playwright/test';
import { readFileSync } from 'node:fs';
import { expect, test } from './harness.js';

/* Prints figures; no goal fails it, since they are as much the machine's as the console's. */

const median = (values: number[]): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!;
const rounded = (values: number[]) => values.map((value) => Math.round(value)).join(', ');
const print = (line: string) => process.stdout.write(`${line}\n`);

/** Ready to be used: the verdict of the overview is there, and nothing is waited for. */
const usable = (page: Page) => expect(page.locator('main').getByRole('heading', { level: 1 })).toBeVisible();

test('first load', async ({ open, browser }) => {
  const first = await open('overview?welcome=no');
  const state = await first.context().storageState();
  const headers = await first.evaluate(() => document.cookie);
  print(`cookies that scripts can read: ${headers.length}`);
  const loads: number[] = [];
  let script = 0;
  for (let load = 0; load < 7; load++) {
    const page = await fresh(browser, state);
    let bytes = 0;
    const session = await page.context().newCDPSession(page);
    await session.send('Network.enable');
    const scripts = new Set<string>();
    session.on('Network.responseReceived', ({ requestId, type }) => type === 'Script' && scripts.add(requestId));
    session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
      if (scripts.has(requestId)) bytes += encodedDataLength;
    });
    const begin = performance.now();
    await page.goto(first.url());
    await usable(page);
    loads.push(performance.now() - begin);
    await page.waitForLoadState('networkidle').catch(() => undefined);
    script = bytes;
    await page.context().close();
  }
  print(`script of the first load, compressed: ${(script / 1024).toFixed(0)} KiB`);
  print(`usable after, ms: ${rounded(loads)}; median ${Math.round(median(loads))}`);
});

test('page changes', async ({ open, heraut }) => {
  // Before anything was accepted the overview leads to the first steps.
  await heraut.publish(await heraut.createChannel());
  const page = await open('overview');
  const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
  const names = await links.allTextContents();
  // Once each, so that their code is there, as it is for somebody who works with it.
  for (const name of names) await links.filter({ hasText: name }).click();
  const took: number[] = [];
  for (const name of [...names, ...names]) {
    took.push(
      await links.filter({ hasText: name }).evaluate(
        (link) =>
          new Promise<number>((resolve) => {
            const main = document.querySelector('main')!;
            const begin = performance.now();
            const look = () => {
              if (main.querySelector('h1') && link.getAttribute('aria-current') === 'page')
                resolve(performance.now() - begin);
              else requestAnimationFrame(look);
            };
            (link as HTMLElement).click();
            requestAnimationFrame(look);
          }),
      ),
    );
  }
  print(
    `page changes, ms: median ${Math.round(median(took))}, longest ${Math.round(Math.max(...took))}, of ${took.length}`,
  );
});

test('the overview in ten browsers', async ({ open, browser, heraut }) => {
  const first = await open('overview?welcome=no');
  const state = await first.context().storageState();
  const pid = heraut.api.pid!;
  const seconds = 30;
  await first.goto('about:blank');
  const idle = await cpuOf(pid, seconds);
  const pages = await Promise.all(Array.from({ length: 10 }, () => fresh(browser, state)));
  await Promise.all(pages.map((page) => page.goto(`${heraut.api.url}/console/overview?welcome=no`)));
  await Promise.all(pages.map(usable));
  const watched = await cpuOf(pid, seconds);
  print(
    `CPU of the api over ${seconds} s: ${(idle * 100).toFixed(2)} % of a core without, ${(watched * 100).toFixed(2)} % with ten overviews`,
  );
  await Promise.all(pages.map((page) => page.context().close()));
});

type State = Awaited<ReturnType<ReturnType<Page['context']>['storageState']>>;

async function fresh(browser: Browser, storageState: State): Promise<Page> {
  const context = await browser.newContext({ storageState, viewport: { width: 1280, height: 800 } });
  return context.newPage();
}

/** Share of a core that the process used in so many seconds. */
async function cpuOf(pid: number, seconds: number): Promise<number> {
  const ticks = () => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return Number(fields[11]) + Number(fields[12]);
  };
  const before = ticks();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  return (ticks() - before) / 100 / seconds;
}
