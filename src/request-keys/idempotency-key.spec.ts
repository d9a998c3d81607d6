import { describe, expect, it } from 'vitest';
import { IdempotencyKeyInFlight, RequestsUnderWay } from './idempotency-key.js';

describe('requests under way', () => {
  const keyOf = (application: string, operation: string, key: string) => ({ application, operation, key });
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
    const first = requests.run(keyOf('a', 'publish', 'k'), work);
    await expect(requests.run(keyOf('a', 'publish', 'k'), work)).rejects.toBeInstanceOf(IdempotencyKeyInFlight);
    const others = [requests.run(keyOf('b', 'publish', 'k'), work), requests.run(keyOf('a', 'put', 'k'), work)];
    others.push(requests.run(keyOf('a', 'publish', 'other'), work));
    letGo('done');
    expect(await Promise.all([first, ...others])).toEqual(['done', 'done', 'done', 'done']);
  });

  it('do not confuse an application and a key with another pair that reads the same when joined', async () => {
    const requests = new RequestsUnderWay();
    const { work, letGo } = hold();
    const both = [
      requests.run(keyOf('a","b', 'publish', 'c'), work),
      requests.run(keyOf('a', 'b","publish', 'c'), work),
    ];
    letGo('done');
    expect(await Promise.all(both)).toEqual(['done', 'done']);
  });

  it('may run at the same time once the first was carried out, but not once it failed', async () => {
    const requests = new RequestsUnderWay();
    const failing = hold();
    const first = requests.run(keyOf('a', 'publish', 'k'), failing.work);
    failing.fail(new Error('the database is down'));
    await expect(first).rejects.toThrow('down');
    const second = hold();
    const runs = [requests.run(keyOf('a', 'publish', 'k'), second.work)];
    await expect(requests.run(keyOf('a', 'publish', 'k'), second.work)).rejects.toBeInstanceOf(IdempotencyKeyInFlight);
    second.letGo('done');
    await Promise.all(runs);
    const third = hold();
    runs.push(
      requests.run(keyOf('a', 'publish', 'k'), third.work),
      requests.run(keyOf('a', 'publish', 'k'), third.work),
    );
    third.letGo('again');
    expect(await Promise.all(runs)).toEqual(['done', 'again', 'again']);
  });
});
