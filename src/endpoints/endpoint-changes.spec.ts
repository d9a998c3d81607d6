import { beforeEach, describe, expect, it } from 'vitest';
import { settled } from '../../test/support/settled.js';
import { EndpointChanges } from './endpoint-changes.js';

const address = 'http://receiver';
const why = { reason: 'HTTP 500', failures: 5, askedMs: undefined };

describe('an endpoint that this process closes', () => {
  let changes: EndpointChanges;
  let started: number;
  /** Answers for the ledger, which is asked to close it. */
  let answer: { closed: (isClosed: boolean) => void; failed: (error: Error) => void };

  beforeEach(() => {
    started = 0;
    changes = new EndpointChanges(
      {
        open: () => Promise.resolve(),
        close: () => new Promise<boolean>((closed, failed) => (answer = { closed, failed })),
      },
      { turnAway: () => {}, startSlowly: () => void started++ },
    );
    changes.close(address);
  });

  it.each<[string, 'before' | 'after']>([
    ['a look says so before the answer to the closing itself', 'before'],
    ['a look says so after the answer to the closing itself', 'after'],
  ])('starts slowly once where %s, and again when others have closed it the next time', async (_, when) => {
    if (when === 'before') changes.haveSeenClosed(address);
    answer.closed(true);
    await settled();
    if (when === 'after') changes.haveSeenClosed(address);
    expect(started).toBe(1);
    changes.haveSeenClosed(address);
    expect(started).toBe(2);
  });

  it.each<[string, () => void]>([
    ['another process was faster', () => answer.closed(false)],
    ['the ledger did not answer', () => answer.failed(new Error('away'))],
  ])('starts slowly once where %s, whenever a look says so', async (_, happen) => {
    changes.haveSeenClosed(address);
    happen();
    await settled();
    expect(started).toBe(1);
    changes.close(address);
    happen();
    await settled();
    expect(started).toBe(1);
    changes.haveSeenClosed(address);
    expect(started).toBe(2);
  });

  it('starts slowly when others have closed it after it was opened anew', async () => {
    answer.closed(true);
    await settled();
    changes.open(address, why);
    await settled();
    changes.haveSeenClosed(address);
    expect(started).toBe(2);
  });
});
