import 'reflect-metadata';
import { InvalidSettings, readSettings, type Settings } from './config/settings.js';
import { endWithError } from './end-with-error.js';
import { CannotConnect } from './infra/cannot-connect.js';
import { move, MoveInDoubt, nameOf, type Moved } from './moving/move.js';
import { MoveRefused } from './moving/why-not.js';
import { KeyRingRefused } from './secrets/key-ring.js';
import { endBySignal, StopSignals } from './stop-signals.js';

/** Between two lines about the same table. */
const quietMs = 2000;

/**
 * Copies everything from the embedded database in `DATA_DIR` to the Postgres of `DATABASE_URL`. Progress and result are
 * for the person who runs it.
 */
async function main(): Promise<void> {
  new StopSignals(endBySignal); // a server undoes what was not committed
  if (process.argv.length > 2)
    throw new InvalidSettings(
      'Usage: npm run move-to-postgres\nCopies everything from the embedded database in DATA_DIR to the Postgres of DATABASE_URL. It takes settings, and no words.',
    );
  const settings = readSettings(process.env);
  let [last, toldAt] = ['', -Infinity];
  const moved = await move(settings, (table, rows) => {
    if (table === last && performance.now() - toldAt < quietMs) return;
    [last, toldAt] = [table, performance.now()];
    console.log(`${table}: ${rows} rows so far`);
  });
  for (const line of [...linesOf(moved, settings), ...nextSteps(moved, settings)]) console.log(line);
}

function linesOf({ counts }: Moved, { DATABASE_URL }: Settings): string[] {
  const longest = Math.max(...[...counts.keys()].map((name) => name.length));
  return [
    '',
    `Moved to ${nameOf(DATABASE_URL!)}, rows by table:`,
    ...[...counts]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, count]) => `  ${name.padEnd(longest)}  ${count}`),
    '',
  ];
}

function nextSteps({ secrets, keyId }: Moved, { DATA_DIR, SUPERUSER_SECRET }: Settings): string[] {
  const protection =
    keyId === undefined
      ? 'can be READ in the database: set SECRET_KEYS or SECRET_KEYS_FILE (docs/running.md#secrets), and the next start encrypts them.'
      : `are encrypted with the key ${keyId}, and were all read once more with it. Without it nobody can.`;
  return [
    ...(secrets > 0 ? [`The ${secrets} stored secrets ${protection}`] : []),
    ...(SUPERUSER_SECRET === undefined
      ? [
          `SUPERUSER_SECRET is not set: the superuser's secret is in ${DATA_DIR}/superuser-secret, and with DATABASE_URL it is not read there.`,
        ]
      : []),
    `${DATA_DIR} was left as it is. Heraut does not start on it any more: it would send again all that was waiting.`,
    'Now start Heraut with the same DATABASE_URL and settings, and look with: heraut doctor',
  ];
}

main().catch((error: unknown) =>
  endWithError(error, [InvalidSettings, CannotConnect, KeyRingRefused, MoveRefused, MoveInDoubt]),
);
