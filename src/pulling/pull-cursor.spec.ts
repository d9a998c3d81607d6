import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { advance, fromCursor, mostSeen, toCursor, type PullCursor } from './pull-cursor.js';

const idOf = (nr: number): string => `00000000-0000-7000-8000-${String(nr).padStart(12, '0')}`;

describe('the cursor of what a subscriber fetches', () => {
  it('reads back as what it was made from', () => {
    fc.assert(
      fc.property(fc.uuid(), fc.array(fc.uuid(), { maxLength: mostSeen }), (after, seen) => {
        expect(fromCursor(toCursor({ after, seen }))).toEqual({ after, seen });
      }),
    );
  });

  it.each([
    ['nothing', ''],
    ['text', 'the second page'],
    ['a part of one', toCursor({ after: idOf(1), seen: [] }).slice(0, -4)],
    ['one with padding', `${toCursor({ after: idOf(1), seen: [] })}==`],
    ['one that remembers too much', toCursor({ after: idOf(1), seen: Array<string>(mostSeen + 1).fill(idOf(2)) })],
  ])('is not %s', (_, text) => {
    expect(fromCursor(text)).toBeUndefined();
  });
});

/** Ids are made in order, are committed in any, and are looked for in between. */
const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.constant({ kind: 'make' as const }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('commit' as const), which: fc.nat() }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('look' as const), limit: fc.integer({ min: 1, max: 5 }) }) },
  ),
  { maxLength: 400, size: 'max' },
);

describe('fetching page by page, while transactions end in another order than they began,', () => {
  it('gives each notification once, and skips none', () => {
    fc.assert(
      fc.property(steps, (history) => {
        let made = 0;
        const open: number[] = [];
        const committed: string[] = [];
        const fetched: string[] = [];
        let cursor: PullCursor = { after: idOf(0), seen: [] };
        const look = (limit: number) => {
          const visible = committed.filter((id) => id > cursor.after && !cursor.seen.includes(id)).toSorted();
          const found = visible.slice(0, limit).map((id) => ({ id }));
          const searchedTo = found.at(-1)?.id ?? idOf(999_999_999);
          const horizon = idOf(Math.min(made, ...open.map((nr) => nr - 1)));
          const { count, next } = advance(cursor, { found, searchedTo, horizon });
          expect(fromCursor(toCursor(next))).toEqual(next);
          fetched.push(...found.slice(0, count).map(({ id }) => id));
          cursor = next;
          return count;
        };
        for (const step of history) {
          if (step.kind === 'make') open.push(++made);
          else if (step.kind === 'look') look(step.limit);
          else if (open.length > 0) committed.push(idOf(open.splice(step.which % open.length, 1)[0]!));
        }
        committed.push(...open.splice(0).map(idOf));
        while (look(100) > 0);
        expect(fetched.toSorted()).toEqual(committed.toSorted());
      }),
    );
  });

  it('remembers no more than fits, and goes on with what lies above when nothing is open below it', () => {
    const found = Array.from({ length: 200 }, (_, nr) => ({ id: idOf(nr + 2) }));
    const searchedTo = found.at(-1)!.id;
    const first = advance({ after: idOf(0), seen: [] }, { found, searchedTo, horizon: idOf(0) });
    expect(first).toMatchObject({ count: mostSeen, isCut: true, next: { after: idOf(0) } });
    const rest = found.slice(first.count);
    expect(advance(first.next, { found: rest, searchedTo, horizon: idOf(0) })).toMatchObject({ count: 0, isCut: true });
    expect(advance(first.next, { found: rest, searchedTo, horizon: idOf(500) })).toEqual({
      count: rest.length,
      isCut: false,
      next: { after: searchedTo, seen: [] },
    });
  });
});
