import { defineConfig } from '@playwright/test';

/** The tests of the console in a real browser. `npm test` runs them after Jest; by hand: see web/README.md. */
export default defineConfig({
  testDir: 'e2e',
  outputDir: 'test-results',
  fullyParallel: false,
  workers: 2,
  // Waits end when what they wait for is there; this ends a test that hangs.
  timeout: 120_000,
  expect: { timeout: 30_000 },
  forbidOnly: true,
  retries: 0,
  reporter: process.env['PLAYWRIGHT_JSON_OUTPUT_NAME'] ? [['dot'], ['json']] : [['list']],
  use: {
    launchOptions: {
      executablePath: process.env['TEST_CHROMIUM'] ?? '/usr/bin/chromium',
      // As root there is no sandbox, and /dev/shm of a container is small.
      args: ['--no-sandbox', '--disable-dev-shm-usage'],
    },
    contextOptions: { reducedMotion: 'reduce' },
    viewport: { width: 1280, height: 800 },
    trace: 'off',
  },
  projects: [
    { name: 'real', testMatch: /.*\.e2e\.ts/, metadata: { stack: 'real' } },
    // What differs with the database in the process: live views, one connection.
    { name: 'embedded', testMatch: /.*\.both\.e2e\.ts/, metadata: { stack: 'embedded' } },
    { name: 'screenshots', testMatch: /.*\.screenshots\.ts/, metadata: { stack: 'real' } },
    // Figures for docs/console.md, of the embedded default.
    { name: 'speed', testMatch: /.*\.speed\.ts/, metadata: { stack: 'embedded' }, timeout: 600_000 },
  ],
});
