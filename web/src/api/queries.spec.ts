import { QueryObserver } from '@tanstack/react-query';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { stubPage } from './stub-page.ts';
import { readProblem } from './problem.ts';

beforeAll(() => {
  stubPage();
});
beforeEach(() => {
  vi.useFakeTimers();
  return () => vi.useRealTimers();
});
afterAll(() => vi.unstubAllGlobals());

const tooMuch = readProblem(new Response(null, { status: 503 }), { code: 'service_unavailable' });
const ofProxy = readProblem(new Response(null, { status: 503 }), undefined);

it.each(['that has data', 'without data'])(
  'a query %s is repeated before its error is shown, and asked only once in each round while it is',
  async (which) => {
    const { queries } = await import('./queries.ts');
    let [asked, isAnswered] = [0, which === 'that has data'];
    const observer = new QueryObserver(queries, {
      queryKey: ['of the spec', which],
      queryFn: () => {
        asked += 1;
        return isAnswered ? Promise.resolve('data') : Promise.reject(tooMuch);
      },
    });
    const end = observer.subscribe(() => undefined);
    await vi.advanceTimersByTimeAsync(0);
    if (isAnswered) {
      [asked, isAnswered] = [0, false];
      void observer.refetch();
    }
    await vi.advanceTimersByTimeAsync(1_499);
    expect(observer.getCurrentResult().isError).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(observer.getCurrentResult()).toMatchObject({ isError: true, error: tooMuch });
    expect(asked).toBe(3);
    void observer.refetch();
    await vi.advanceTimersByTimeAsync(0);
    expect(asked).toBe(4);
    expect(observer.getCurrentResult()).toMatchObject({ isError: true, fetchStatus: 'idle' });
    isAnswered = true;
    void observer.refetch();
    await vi.advanceTimersByTimeAsync(0);
    expect(observer.getCurrentResult()).toMatchObject({ isError: false, data: 'data' });
    // With the error, that rule is over.
    [asked, isAnswered] = [0, false];
    void observer.refetch();
    await vi.advanceTimersByTimeAsync(1_500);
    expect(asked).toBe(3);
    end();
  },
);

it('where nothing answers while an error is shown, it is tried again without end', async () => {
  const { queries } = await import('./queries.ts');
  let [asked, error] = [0, tooMuch];
  const observer = new QueryObserver(queries, {
    queryKey: ['of the spec', 'unanswered'],
    queryFn: () => {
      asked += 1;
      return Promise.reject(error);
    },
  });
  const end = observer.subscribe(() => undefined);
  await vi.advanceTimersByTimeAsync(1_500);
  expect(observer.getCurrentResult().isError).toBe(true);
  [asked, error] = [0, ofProxy];
  void observer.refetch();
  await vi.advanceTimersByTimeAsync(3_500);
  expect(asked).toBe(4);
  end();
});

it('a command that is refused because the session has ended has the page ask to sign in, whatever it does with the error', async () => {
  const [{ queries }, { answerOf, api }, { isOverKey, readSession, sessionKey }] = await Promise.all([
    import('./queries.ts'),
    import('./client.ts'),
    import('./session.ts'),
  ]);
  const signIn = { oidc: true, label: 'Stad', password: false };
  const ended = () => Response.json({ code: 'not-signed-in', status: 401, signIn }, { status: 401 });
  vi.stubGlobal('fetch', () => Promise.resolve(ended()));
  queries.setQueryData(sessionKey, { user: { name: 'Jan' } });
  const queryFn = () => readSession(queries);
  const end = new QueryObserver(queries, { queryKey: sessionKey, queryFn, staleTime: Infinity }).subscribe(() => {});
  try {
    const path = { erasureId: 'an erasure' };
    const command = answerOf(
      api.POST('/admin/v1/erasures/{erasureId}/confirm', { params: { path }, body: { confirm: 1 } }),
    );
    await expect(command).rejects.toMatchObject({ code: 'not-signed-in' });
    await vi.waitFor(() => expect(queries.getQueryData(isOverKey)).toBe(true));
  } finally {
    end();
    queries.clear();
  }
});
