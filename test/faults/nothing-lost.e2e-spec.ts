import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChild, type Child } from '../../scripts/bench/child.mjs';
import type { FaultsPublisher } from '../../scripts/faults/publisher.mjs';
import type { CheckingReceiver } from '../../scripts/faults/receiver.mjs';
import { playScenario } from '../../scripts/faults/play.mjs';
import { scenarios } from '../../scripts/faults/scenarios.mjs';
import type { Result } from '../../scripts/faults/stage.mjs';
import { startGuardian } from '../../scripts/private-servers.mjs';
import { real } from '../support/stacks.js';

/**
 * A few short scenarios of `npm run faults` that do not break servers of other tests. A failure they find can be played
 * again at length: `npm run faults -- --only <name> --seed <seed>`.
 */
describe('the fault suite', () => {
  const seed = Math.floor(Math.random() * 1e6);
  let directory: string;
  let receiver: Child<CheckingReceiver>;
  let publisher: Child<FaultsPublisher>;
  let receiverUrl: string;
  let lastRun = 0;
  const guardian = startGuardian();

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'heraut-faults-'));
    [receiver, publisher] = await Promise.all([
      startChild('../faults/receiver.mjs'),
      startChild('../faults/publisher.mjs'),
    ]);
    receiverUrl = await receiver.call('listen', undefined);
  });

  afterAll(async () => {
    await Promise.all([receiver.stop(), publisher.stop(), guardian.end()]);
    await rm(directory, { recursive: true, force: true });
  });

  it.each(['all-killed', 'commit-cut'])(
    'loses no delivery, and doubles no more than were in flight: %s',
    async (name) => {
      const { reckonings, wrong } = await play(name);
      expect({ seed, wrong }).toEqual({ seed, wrong: [] });
      expect(reckonings.map(({ strategy, lost }) => ({ strategy, lost }))).toEqual([
        { strategy: 'at-least-once', lost: 0 },
        { strategy: 'at-most-once', lost: 0 },
      ]);
      for (const { accepted } of reckonings) expect(accepted).toBeGreaterThan(100);
    },
  );

  async function play(name: string): Promise<Result> {
    const scenario = scenarios.find((one) => one.name === name)!;
    const stack = await real.prepare();
    try {
      return await playScenario(scenario, {
        counts: { api: 1, worker: 2, dispatcher: 1 },
        settings: stack.settings,
        servers: undefined,
        receiver,
        receiverUrl,
        publisher,
        run: ++lastRun,
        directory: await mkdtemp(join(directory, `${name}-`)),
        tellGuardian: guardian.tell,
        seed,
        ratePerSecond: 100,
        pace: 'brief',
        log: () => {},
      });
    } finally {
      await stack.release();
    }
  }
});
