import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { whileNeitherAborted } from './while-neither-aborted.js';

const aborted = (signal: AbortSignal) =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener('abort', () => resolve(signal.reason));
  });

it.each([0, 1])('ends work when either of two signals is aborted, also before it begins (%i)', async (which) => {
  const both = [new AbortController(), new AbortController()] as const;
  const [one, other] = both.map(({ signal }) => signal) as [AbortSignal, AbortSignal];
  const working = whileNeitherAborted(one, other, aborted);
  both[which]!.abort('over');
  expect(await working).toBe('over');
  expect(await whileNeitherAborted(one, other, aborted)).toBe('over');
  expect([one, other].flatMap((signal) => getEventListeners(signal, 'abort'))).toEqual([]);
});

it('leaves nothing in either signal where the work fails', async () => {
  const [{ signal: one }, { signal: other }] = [new AbortController(), new AbortController()];
  const working = whileNeitherAborted(one, other, () => Promise.reject(new Error('failed')));
  await expect(working).rejects.toThrow('failed');
  expect([one, other].flatMap((signal) => getEventListeners(signal, 'abort'))).toEqual([]);
});
