import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import {
  readProgress,
  readQueueCreation,
  recordProgress,
  recordQueueCreation,
  sweepProgress,
} from '../../src/queue/progress-reports.js';
import { TestLedger } from '../support/ledger.js';
import { stacks } from '../support/stacks.js';

Logger.overrideLogger(false);

describe.each(stacks)('how far the workers are with the queue, on the $name stack', (stack) => {
  let test: TestLedger;

  beforeAll(async () => {
    test = await TestLedger.on(stack);
  });
  beforeEach(() => test.clear());
  afterAll(() => test.close());

  it('is the newest chunk that any of them took, and the oldest that any still has in hand', async () => {
    expect(await readProgress(test.postgres)).toEqual([]);
    await recordProgress(test.postgres, 'one', [
      { lane: 'due', newestTaken: 2000, oldestUnacknowledged: 1700 },
      { lane: 'slow', newestTaken: 1000, oldestUnacknowledged: null },
    ]);
    await recordProgress(test.postgres, 'another', [{ lane: 'due', newestTaken: 1900, oldestUnacknowledged: 1500 }]);
    expect(await readProgress(test.postgres)).toEqual(
      expect.arrayContaining([
        { lane: 'due', newestTaken: 2000, oldestUnacknowledged: 1500 },
        { lane: 'slow', newestTaken: 1000, oldestUnacknowledged: null },
      ]),
    );
    await recordProgress(test.postgres, 'another', [{ lane: 'due', newestTaken: 2500, oldestUnacknowledged: null }]);
    expect(await readProgress(test.postgres)).toEqual(
      expect.arrayContaining([{ lane: 'due', newestTaken: 2500, oldestUnacknowledged: 1700 }]),
    );
  });

  it('no longer counts a worker that has not reported for so long that the broker gave its chunks to others', async () => {
    const report = async (process: string, secondsAgo: number) => {
      await recordProgress(test.postgres, process, [{ lane: 'due', newestTaken: 2000, oldestUnacknowledged: 1500 }]);
      await test.sql(`UPDATE lane_progress SET reported_at = now() - $2 * interval '1 s' WHERE process = $1`, [
        process,
        secondsAgo,
      ]);
    };
    await report('long gone', 21);
    expect(await readProgress(test.postgres)).toEqual([]);
    await report('just gone', 10);
    expect(await readProgress(test.postgres)).toMatchObject([{ lane: 'due', oldestUnacknowledged: 1500 }]);
    await sweepProgress(test.postgres);
    expect(await test.sql('SELECT process FROM lane_progress')).toEqual([{ process: 'just gone' }]);
  });

  it('is not what was taken or reported before Postgres’ clock was set back', async () => {
    const now = await test.now();
    const ahead = now + 3_600_000;
    await recordProgress(test.postgres, 'one', [{ lane: 'due', newestTaken: now - 10, oldestUnacknowledged: null }]);
    await recordProgress(test.postgres, 'another', [
      { lane: 'due', newestTaken: ahead, oldestUnacknowledged: now - 20 },
      { lane: 'slow', newestTaken: ahead, oldestUnacknowledged: null },
    ]);
    expect(await readProgress(test.postgres)).toEqual(
      expect.arrayContaining([
        { lane: 'due', newestTaken: now - 10, oldestUnacknowledged: now - 20 },
        { lane: 'slow', newestTaken: 0, oldestUnacknowledged: null },
      ]),
    );
    await test.sql(`UPDATE lane_progress SET reported_at = now() + interval '1 hour' WHERE process = 'another'`);
    await sweepProgress(test.postgres);
    expect(await test.sql('SELECT process FROM lane_progress')).toEqual([{ process: 'one' }]);
  });

  it('does not count a creation of the queue from before Postgres’ clock was set back, also when it is that late again', async () => {
    await recordQueueCreation(test.postgres, (await test.now()) + 3_600_000);
    expect(await readQueueCreation(test.postgres)).toBeUndefined();
    await sweepProgress(test.postgres);
    expect(await test.sql('SELECT FROM queue_creation')).toEqual([]);
    const createdAt = await test.now();
    await recordQueueCreation(test.postgres, createdAt);
    await sweepProgress(test.postgres);
    expect(await readQueueCreation(test.postgres)).toBe(createdAt);
  });

  it('knows when the queue was last created anew', async () => {
    expect(await readQueueCreation(test.postgres)).toBeUndefined();
    await recordQueueCreation(test.postgres, 1_763_625_600_123);
    await recordQueueCreation(test.postgres, 1_763_625_700_456);
    expect(await readQueueCreation(test.postgres)).toBe(1_763_625_700_456);
  });
});
