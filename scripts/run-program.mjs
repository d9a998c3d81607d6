// Runs one of the programs beside the broker, built if need be: the first word is its file in dist, the others are its
// own.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { makeReady, projectDirectory } from './ready-to-run.mjs';

const [name = '', ...words] = process.argv.slice(2);
try {
  await makeReady(console.error);
  const program = join(projectDirectory, 'dist', name);
  const { status } = spawnSync(process.execPath, [program, ...words], { stdio: 'inherit' });
  process.exitCode = status ?? 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
