// Runs one of the programs beside the broker, built if need be: the first word is its file in dist, the others are its
// own.
import { join } from 'node:path';
import { makeReady, projectDirectory } from './ready-to-run.mjs';
import { spawnInFront } from './spawn-in-front.mjs';

const [name = '', ...words] = process.argv.slice(2);
try {
  await makeReady(console.error);
  spawnInFront([join(projectDirectory, 'dist', name), ...words]);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
