import { describe, expect, it } from 'vitest';
import { LocksToRelease } from './locks-to-release.js';
import { newDelivery } from '../../test/support/new-delivery.js';

describe('the lock of a delivery that is to be repeated', () => {
  const delivery = newDelivery({});
  const ofGeneration = (generation: number) => ({ ...delivery, generation });

  it('is waited for by a later message until it was released, and forgotten then', async () => {
    const locks = new LocksToRelease();
    const released = locks.add(ofGeneration(1));
    const waiting = locks.beforeSending(ofGeneration(2));
    expect([waiting, locks.beforeSending(ofGeneration(1))]).toEqual([expect.any(Promise), undefined]);
    released();
    await waiting;
    expect(locks.beforeSending(ofGeneration(2))).toBeUndefined();
  });

  it('is waited for also where that of the attempt before is released later', () => {
    const locks = new LocksToRelease();
    const releasedBefore = locks.add(ofGeneration(1));
    locks.add(ofGeneration(2));
    releasedBefore();
    expect(locks.beforeSending(ofGeneration(3))).toBeInstanceOf(Promise);
  });
});
