import { Postgres } from '../../src/infra/postgres/postgres.js';
import { readSettings } from '../../src/config/settings.js';
import { TestLedger } from './ledger.js';
import { real } from './stacks.js';
import { VirtualTime } from './virtual-time.js';

export interface VirtualLedger {
  test: TestLedger;
  time: VirtualTime;
  close(): Promise<void>;
}

/**
 * A ledger of its own on the tests' PostgreSQL, in whose statements time passes only when it is told to. Vitest's
 * timers are fake from then on.
 */
export async function openVirtualLedger(): Promise<VirtualLedger> {
  const prepared = await real.prepare(false); // its time is another one, and so are its partitions
  const postgres = await Postgres.open(readSettings(prepared.settings), []);
  await postgres.migrate();
  await VirtualTime.install(postgres);
  await postgres.close();
  const test = await TestLedger.open(prepared.settings);
  const time = VirtualTime.begin(test.postgres);
  const close = async () => {
    await test.close();
    await prepared.release();
  };
  return { test, time, close };
}
