// `npm run dispatch -- --once`: one round of the dispatcher, for cron. It may run at any time, and several times at once.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildWhenNeeded, installWhenNeeded, projectDirectory, requireNode } from './ready-to-run.mjs';

try {
  requireNode();
  installWhenNeeded(console.error);
  await buildWhenNeeded(console.error);
  const program = join(projectDirectory, 'dist/dispatch-once.js');
  const { status } = spawnSync(process.execPath, [program, ...process.argv.slice(2)], { stdio: 'inherit' });
  process.exitCode = status ?? 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
