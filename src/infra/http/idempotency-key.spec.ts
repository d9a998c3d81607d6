import { describe, expect, it } from '@jest/globals';
import { IdempotencyKeyInFlight, RequestsUnderWay } from './idempotency-key.js';

describe('requests under way', () => {
  const hold = () => {
    let letGo!: (outcome: string) => void;
    let fail!: (error: Error) => void;
    const done = new Promise<string>((resolve, reject) => {
      letGo = resolve;
      fail = reject;
    });
    return { work: () => done, letGo, fail };
  };

  it('are one for each key, application and operation at a time', async () => {
    const requests = new RequestsUnderWay();
    const { work, letGo } = hold();
    const first = requests.run('a', 'publish', 'k', work);
    await expect(requests.run('a', 'publish', 'k', work)).rejects.toBeInstanceOf(IdempotencyKeyInFlight);
    const others = [requests.run('b', 'publish', 'k', work), requests.run('a', 'put', 'k', work)];
    others.push(requests.run('a', 'publish', 'other', work));
    letGo('done');
    expect(await Promise.all([first, ...others])).toEqual(['done', 'done', 'done', 'done']);
  });

  it('do not take an application and a key for another pair that reads the same', async () => {
    const requests = new RequestsUnderWay();
    const { work, letGo } = hold();
    const both = [requests.run('a","b', 'publish', 'c', work), requests.run('a', 'b","publish', 'c', work)];
    letGo('done');
    expect(await Promise.all(both)).toEqual(['done', 'done']);
  });

  it('may repeat together what was carried out, but not what failed', async () => {
    const requests = new RequestsUnderWay();
    const failing = hold();
    const first = requests.run('a', 'publish', 'k', failing.work);
    failing.fail(new Error('the database is down'));
    await expect(first).rejects.toThrow('down');
    const second = hold();
    const runs = [requests.run('a', 'publish', 'k', second.work)];
    await expect(requests.run('a', 'publish', 'k', second.work)).rejects.toBeInstanceOf(IdempotencyKeyInFlight);
    second.letGo('done');
    await Promise.all(runs);
    const third = hold();
    runs.push(requests.run('a', 'publish', 'k', third.work), requests.run('a', 'publish', 'k', third.work));
    third.letGo('again');
    expect(await Promise.all(runs)).toEqual(['done', 'again', 'again']);
  });
});
