import { describe, expect, it } from '@jest/globals';
import { Capacity } from './capacity.js';

describe('capacity', () => {
  it('gives a place at once while there is one', () => {
    const capacity = new Capacity(2);
    expect(capacity.take()).toBeUndefined();
    expect(capacity.take()).toBeUndefined();
    expect(capacity.take()).toBeInstanceOf(Promise);
  });

  it('hands a place that is given back to whoever waits longest', async () => {
    const capacity = new Capacity(1);
    void capacity.take();
    const order: string[] = [];
    const first = capacity.take()!.then(() => order.push('first'));
    const second = capacity.take()!.then(() => order.push('second'));
    capacity.giveBack();
    await first;
    expect(order).toEqual(['first']);
    capacity.giveBack();
    await second;
    expect(order).toEqual(['first', 'second']);
  });

  it('never has more places than it began with', () => {
    const capacity = new Capacity(1);
    void capacity.take();
    void capacity.take();
    capacity.giveBack(); // goes to the one in line
    expect(capacity.take()).toBeInstanceOf(Promise);
    capacity.giveBack();
    capacity.giveBack();
    expect(capacity.take()).toBeUndefined();
    expect(capacity.take()).toBeInstanceOf(Promise);
  });
});
