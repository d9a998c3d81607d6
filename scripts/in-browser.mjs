// Runs one of Playwright's projects of the console that is no test: `screenshots` or `speed`, with servers of its own.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { findOrInstallChromium } from './private-servers/programs.mjs';
import { startPrivateServers } from './private-servers.mjs';
import { installWhenNeeded, makeReady, projectDirectory } from './ready-to-run.mjs';

const [project = '', ...words] = process.argv.slice(2);
const log = (/** @type {string} */ line) => console.error(line);
try {
  await installWhenNeeded(log);
  await makeReady(log);
  const chromium = findOrInstallChromium(log);
  const { environment, stop } = await startPrivateServers(log);
  try {
    const program = join(projectDirectory, 'node_modules/@playwright/test/cli.js');
    const { status } = spawnSync(
      process.execPath,
      // One after the other: they measure.
      [program, 'test', '--config', 'web/playwright.config.ts', `--project=${project}`, '--workers=1', ...words],
      { cwd: projectDirectory, stdio: 'inherit', env: { ...process.env, ...environment, TEST_CHROMIUM: chromium } },
    );
    process.exitCode = status ?? 1;
  } finally {
    await stop();
  }
} catch (error) {
  log(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
