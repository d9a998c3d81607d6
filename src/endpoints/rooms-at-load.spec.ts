import { describe, expect, it } from 'vitest';
import { Place } from './room.js';
import { Rooms } from './rooms.js';
import { well, type Verdict } from './verdict.js';
import { settled } from '../../test/support/settled.js';

const timeoutMs = 10_000;
const timedOut: Verdict = { kind: 'unanswered', reason: 'no answer within 10 s' };

interface Load {
  seconds: number;
  /** Endpoints beside the healthy one, and how many deliveries go to them a second, all together. */
  endpoints: number;
  perSecond: number;
  /** So many for one of them follow each other; 1 where left out. */
  inTurn?: number;
  /** Of a call that begins at that time. */
  answerMs: (atMs: number) => number;
}

interface Course {
  /** Of the healthy endpoint: deliveries that were held, and the slowest twentieth, for each five seconds. */
  held: number;
  p95: number[];
  /** Most places taken at once. */
  most: number;
}

/** In virtual time, a worker with 512 places, and an endpoint that answers 400 calls a second within 5 ms each. */
async function run({ seconds, endpoints, perSecond, inTurn = 1, answerMs }: Load): Promise<Course> {
  const startMs = 1_000_000;
  let nowMs = startMs;
  const rooms = new Rooms({ places: 512, perUrl: 128, longestWaitMs: 60_000, now: () => nowMs });
  const due = new Map<number, (() => void)[]>();
  const took: number[][] = Array.from({ length: seconds / 5 }, () => []);
  const course: Course = { held: 0, p95: [], most: 0 };
  let open = 0;

  function deliver(callbackUrl: string, answersInMs: number, onEnd?: () => void): void {
    const take = (answer: Place | string) => {
      if (!(answer instanceof Place)) {
        if (onEnd) course.held++;
        return;
      }
      course.most = Math.max(course.most, ++open);
      rooms.begin(answer);
      const durationMs = Math.min(answersInMs, timeoutMs);
      const end = () => {
        open--;
        rooms.leave(answer, answersInMs < timeoutMs ? well : timedOut, durationMs);
        rooms.giveBack(answer);
        onEnd?.();
      };
      const at = nowMs + durationMs;
      due.set(at, [...(due.get(at) ?? []), end]);
    };
    const answer = rooms.enter({ id: 'subscription', callbackUrl, maxConcurrency: null, credentials: {} });
    if (answer instanceof Promise) void answer.then(take);
    else take(answer);
  }

  let others = 0;
  for (let ms = 0; ms < seconds * 1000; ms++) {
    nowMs = startMs + ms;
    for (const end of due.get(nowMs) ?? []) end();
    due.delete(nowMs);
    const askedMs = nowMs;
    if (ms % 5 < 2) deliver('http://healthy/', 5, () => took[Math.floor(ms / 5000)]!.push(nowMs - askedMs));
    for (; others < (ms * perSecond) / 1000; others++)
      deliver(`http://other-${Math.floor(others / inTurn) % endpoints}/`, answerMs(ms));
    if (ms % 50 === 0) rooms.tick();
    await settled();
  }
  course.p95 = took.map(
    (each) => each.toSorted((one, other) => one - other)[Math.floor(each.length * 0.95)] ?? Infinity,
  );
  return course;
}

describe('a healthy endpoint', () => {
  it('is not touched when sixty-four endpoints hang, are well for half a second, and hang again', async () => {
    const answerMs = (atMs: number) => (atMs >= 25_000 && atMs < 25_500 ? 5 : Infinity);
    const { held, p95 } = await run({ seconds: 60, endpoints: 64, perSecond: 400, answerMs });
    expect(held).toBe(0);
    expect(Math.max(...p95)).toBe(5);
  });

  it('has places beside fifty endpoints that answer, each after nine seconds', async () => {
    const { held, p95, most } = await run({ seconds: 30, endpoints: 50, perSecond: 400, answerMs: () => 9000 });
    expect([held, ...p95]).toEqual([0, 5, 5, 5, 5, 5, 5]);
    expect(most).toBeGreaterThan(400); // the slow ones use what there is
  });

  it('has places beside fifty endpoints that answer after eight seconds, and of which one after the other gets a burst', async () => {
    const answerMs = () => 8000;
    const { held, p95, most } = await run({ seconds: 60, endpoints: 50, perSecond: 400, inTurn: 64, answerMs });
    expect([held, Math.max(...p95)]).toEqual([0, 5]);
    expect(most).toBeGreaterThan(400);
  });
});
