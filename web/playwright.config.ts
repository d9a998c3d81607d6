import { defineConfig } from '@playwright/test';

/** The tests of the console in a real browser. `npm test` runs them beside the others; by hand: see web/README.md. */
export default defineConfig({
  testDir: 'e2e',
  outputDir: 'test-results',
  fullyParallel: true,
  // Beside the three of Vitest, one is done when they are; a second would start one more program and one more browser.
  workers: 1,
  // Waits end when what they wait for is there; this ends a test that hangs.
  timeout: 120_000,
  expect: { timeout: 30_000 },
  forbidOnly: true,
  retries: 0,
  reporter: process.env['PLAYWRIGHT_JSON_OUTPUT_NAME'] ? [['dot'], ['json']] : [['list']],
  use: {
    launchOptions: {
      executablePath: process.env['TEST_CHROMIUM'] ?? '/usr/bin/chromium',
      // As root there is no sandbox, and /dev/shm of a container is small. Where a graphics card is missing, a program
      // that plays one draws each frame; without either, pages are drawn the plain way.
      args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
    },
    // One for all tests of a worker, emptied in between: it keeps the files of the console, and what V8 has compiled of
    // them.
    reuseContext: true,
    contextOptions: { reducedMotion: 'reduce' },
    // Dates on the pages are the same on every machine.
    timezoneId: 'UTC',
    viewport: { width: 1280, height: 800 },
    trace: 'off',
  },
  projects: [
    // The one process with its database: from nothing to a delivery, and the way of an operator through the pages.
    { name: 'embedded', testMatch: /.*\.embedded\.e2e\.ts/, metadata: { stack: 'embedded' } },
    { name: 'real', testMatch: /.*(?<!\.embedded)\.e2e\.ts/, metadata: { stack: 'real' } },
    { name: 'screenshots', testMatch: /.*\.screenshots\.ts/, metadata: { stack: 'real' } },
    // Figures for docs/console.md, of the embedded default.
    { name: 'speed', testMatch: /.*\.speed\.ts/, metadata: { stack: 'embedded' }, timeout: 600_000 },
  ],
});
