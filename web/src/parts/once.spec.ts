import { expect, it } from 'vitest';
import { readProblem, Unreachable } from '../api/problem.ts';
import { Once } from './once.ts';

const refused = (status: number, code: string) => readProblem(new Response(null, { status }), { code });
const lost = new Unreachable(new Error('reset'));

/** Tries what is asked with each outcome in turn. @returns the key of each try, and what was sent */
async function triesOf(tries: [asked: string, outcome: Error | 'done'][]): Promise<{ keys: number[]; sent: number[] }> {
  const once = new Once();
  const keys: string[] = [];
  const sent: number[] = [];
  for (const [nr, [asked, outcome]] of tries.entries()) {
    const send = (request: number, header: { 'Idempotency-Key': string }) => {
      keys.push(header['Idempotency-Key']);
      sent.push(request);
      return outcome === 'done' ? Promise.resolve() : Promise.reject(outcome);
    };
    await once.send(nr, send, asked).catch(() => {});
  }
  const different = [...new Set(keys)];
  return { keys: keys.map((key) => different.indexOf(key)), sent };
}

it('sends what may be done as it was, under its key, until an answer says what became of it', async () => {
  expect(
    await triesOf([
      ['a', lost],
      ['a', refused(503, 'service_unavailable')],
      ['a', refused(409, 'idempotency-key-in-flight')],
      ['a', 'done'],
      ['a', 'done'],
    ]),
  ).toEqual({ keys: [0, 0, 0, 0, 1], sent: [0, 0, 0, 0, 4] });
});

it.each([
  [401, 'not_authenticated'],
  [403, 'role-too-low'],
  [404, 'http-404'],
  [429, 'too_many_requests'],
  [400, 'invalid'],
])('keeps the key where a later try is refused with %i %s: that says nothing of the first', async (status, code) => {
  expect(
    await triesOf([
      ['a', lost],
      ['a', refused(status, code)],
      ['a', 'done'],
    ]),
  ).toEqual({ keys: [0, 0, 0], sent: [0, 0, 0] });
});

it('begins anew where it was refused, or something else is asked for', async () => {
  expect(
    await triesOf([
      ['a', refused(400, 'invalid')],
      ['a', lost],
      ['b', lost],
      ['a', 'done'],
    ]),
  ).toEqual({ keys: [0, 1, 2, 3], sent: [0, 1, 2, 3] });
});

it.each(['selection-not-confirmed', 'deleted-meanwhile'])(
  'begins anew where those who have looked for the key say that it was not done, or is gone: %s',
  async (code) => {
    expect(
      await triesOf([
        ['a', lost],
        ['a', refused(409, code)],
        ['a', 'done'],
      ]),
    ).toEqual({ keys: [0, 0, 1], sent: [0, 0, 2] });
  },
);

it.each(['done', refused(400, 'invalid')])(
  'keeps the key of what was asked for later, although an earlier one is settled: %s',
  async (outcome) => {
    const once = new Once();
    const keys: string[] = [];
    const settle: ((outcome: Error | 'done') => void)[] = [];
    const ask = (asked: string) =>
      once.send(asked, (_, header) => {
        keys.push(header['Idempotency-Key']);
        return new Promise<void>((resolve, reject) => {
          settle.push((each) => (each === 'done' ? resolve() : reject(each)));
        });
      });
    const [earlier, later] = [ask('a'), ask('b')];
    settle[0]!(outcome as Error | 'done');
    await earlier.catch(() => {});
    settle[1]!(lost);
    await expect(later).rejects.toBe(lost);
    void ask('b');
    expect(keys).toEqual([keys[0], keys[1], keys[1]]);
  },
);
