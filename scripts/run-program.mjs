// Runs one of the programs beside the broker, built if need be, with the words of the command line.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildWhenNeeded, installWhenNeeded, projectDirectory, requireNode } from './ready-to-run.mjs';

/** @param {string} name of a file in dist */
export async function runProgram(name) {
  try {
    requireNode();
    installWhenNeeded(console.error);
    await buildWhenNeeded(console.error);
    const program = join(projectDirectory, 'dist', name);
    const { status } = spawnSync(process.execPath, [program, ...process.argv.slice(2)], { stdio: 'inherit' });
    process.exitCode = status ?? 1;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
