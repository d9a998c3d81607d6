// Of a script that imports packages (`node --import`): installs them before Node looks for them, as in a fresh clone.
import { installWhenNeeded, requireNode } from './ready-to-run.mjs';

try {
  requireNode();
  await installWhenNeeded(console.error);
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
}
