import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { page, stubPage } from './stub-page.ts';

let now = 0;
const sent: Request[] = [];
const atOnce = () => Response.json({});
type Answer = Response | Promise<Response>;
let answer: (signal: AbortSignal | null | undefined) => Answer = atOnce;
const never = (signal: AbortSignal | null | undefined) =>
  new Promise<Response>((_, fail) => {
    signal?.addEventListener('abort', () => fail(signal.reason as Error));
  });

beforeAll(() => {
  stubPage();
  vi.stubGlobal('fetch', (request: Request, { signal }: RequestInit = {}) => {
    sent.push(request);
    return Promise.resolve(answer(signal));
  });
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => {
  sent.splice(0);
  answer = atOnce;
  vi.useRealTimers();
});
afterAll(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it.each(['GET', 'POST', 'DELETE'])(
  'says of a %s that nobody asked for lately that it is no use of the session',
  async (method) => {
    const { callConsole } = await import('./client.ts');
    page.dispatchEvent(new Event('keydown'));
    await callConsole(method, 'session');
    now += 61_000;
    await callConsole(method, 'session');
    now -= 61_000;
    expect(sent.map(({ headers }) => headers.get('x-heraut-console'))).toEqual(['1', '0']);
  },
);

/** One part of it every so many milliseconds; then it ends, or nothing comes any more. */
const inParts =
  (parts: string[], everyMs: number, end: 'whole' | 'silent') => (signal: AbortSignal | null | undefined) =>
    new Response(
      new ReadableStream({
        start: (stream) => {
          signal?.addEventListener('abort', () => stream.error(signal.reason));
          parts.forEach((part, nr) =>
            setTimeout(() => stream.enqueue(new TextEncoder().encode(part)), everyMs * (nr + 1)),
          );
          if (end === 'whole') setTimeout(() => stream.close(), everyMs * (parts.length + 1));
        },
      }),
    );

/** The clock that a test moves; the browser's own of `AbortSignal.timeout` as well. */
function stopTheClock() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
    const over = new AbortController();
    setTimeout(() => over.abort(new DOMException('', 'TimeoutError')), ms);
    return over.signal;
  });
}

it('an answer that is still arriving is read to its end, however long that takes', async () => {
  const { callConsole } = await import('./client.ts');
  stopTheClock();
  answer = inParts(['{"a":', '[1,', '2]', '}'], 30_000, 'whole');
  const reading = callConsole('GET', 'session');
  await vi.advanceTimersByTimeAsync(150_000);
  expect(await reading).toEqual({ a: [1, 2] });
});

it('an answer that goes silent in the middle is given up, as where nothing answers', async () => {
  const { callConsole } = await import('./client.ts');
  const { Unreachable } = await import('./problem.ts');
  stopTheClock();
  answer = inParts(['{"a":'], 30_000, 'silent');
  const failing = callConsole('GET', 'session').catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(80_000);
  expect(await failing).toBeInstanceOf(Unreachable);
});

it('a change that nothing answers is given up as well, and may have been carried out', async () => {
  const { callConsole } = await import('./client.ts');
  const { mayBeDone, Unreachable } = await import('./problem.ts');
  stopTheClock();
  answer = never;
  const failing = callConsole('POST', 'session/end-all').catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(46_000);
  const error = await failing;
  expect(error).toBeInstanceOf(Unreachable);
  expect(mayBeDone(error)).toBe(true);
});

it('a call that waits for a receiver is given as long as a receiver may take', async () => {
  const { reachReceiver } = await import('./client.ts');
  const { Unreachable } = await import('./problem.ts');
  stopTheClock();
  answer = never;
  let error: unknown;
  const failing = reachReceiver(new Request('http://heraut.test/', { method: 'POST' })).catch((failure: unknown) => {
    error = failure;
  });
  await vi.advanceTimersByTimeAsync(300_000);
  expect(error).toBeUndefined();
  await vi.advanceTimersByTimeAsync(31_000);
  await failing;
  expect(error).toBeInstanceOf(Unreachable);
});
