import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { stubPage } from '../api/stub-page.ts';

beforeAll(() => {
  stubPage();
});
afterAll(() => vi.unstubAllGlobals());

const page = (rows: number, nextCursor: string | null) => ({ rows: Array.from({ length: rows }), nextCursor });

it.each([
  ['of one page', [page(1, null)], true],
  ['of one page that goes on', [page(1, 'more')], true],
  ['that is empty', [page(0, null)], true],
  ['that is not there yet', undefined, true],
  ['of two pages', [page(1, 'more'), page(1, null)], false],
  ['that was searched in part, and nothing found', [page(0, 'more')], false],
])('a list %s is read again by itself only where nothing moves or is searched twice by that', async (_, pages, is) => {
  const { whileOnePage } = await import('./next-page.ts');
  const interval = whileOnePage(({ rows }: ReturnType<typeof page>) => rows);
  const data = pages && { pages };
  expect(interval({ state: { data, status: 'success', error: null } })).toBe(is ? 10_000 : false);
});

it('pages tell when they were read', async () => {
  const { readNow } = await import('./next-page.ts');
  const before = Date.now();
  const { readAt, ...rest } = await readNow(Promise.resolve(page(0, null)));
  expect(rest).toEqual(page(0, null));
  expect(readAt).toBeGreaterThanOrEqual(before);
});
