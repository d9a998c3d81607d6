import { beforeEach, describe, expect, it } from 'vitest';
import { OpenCalls, type Call } from './call.js';
import type { WebhookResponse } from './webhook-client.js';

describe('bodies that are read on after a 2xx was told', () => {
  let calls: OpenCalls;
  let told: WebhookResponse[];
  /** Of the calls whose connection was cut. */
  let cut: string[];

  beforeEach(() => {
    calls = new OpenCalls();
    told = [];
    cut = [];
  });

  /** The head of an answer is there, and its body is not. */
  function answer(origin: string): Call {
    const call = calls.open(origin, 10_000, (response) => told.push(response));
    call.begin(false, () => cut.push(origin));
    call.head(200, {});
    return call;
  }
  const answerMany = (origin: string, count: number) => Array.from({ length: count }, () => answer(origin));

  it('are no more of one origin than it leaves to others, and each answer counts all the same', () => {
    answerMany('http://drips', 200);
    expect(told.filter(({ kind }) => kind === 'answered')).toHaveLength(200);
    expect(cut).toHaveLength(200 - 64);
  });

  it('cost no other origin its connections, although one uses up all that it may have', () => {
    answerMany('http://drips', 200);
    cut = [];
    for (let nr = 0; nr < 100; nr++) answerMany('http://well', 16).forEach((call) => call.complete());
    expect(cut).toEqual([]);
  });

  it('leave a place to the next origin, however many drip', () => {
    for (let nr = 0; nr < 5; nr++) answerMany(`http://drips-${nr}`, 200);
    cut = [];
    answer('http://well').complete();
    expect(cut).toEqual([]);
  });

  it('count no more once they have come, or were cut', () => {
    for (let round = 0; round < 3; round++) {
      const open = answerMany('http://drips', 100);
      expect(cut).toHaveLength(36);
      cut = [];
      for (const call of open) call.complete();
    }
    expect((Reflect.get(calls, 'readOnOf') as Map<string, number>).size).toBe(0);
  });
});

describe('a machine that has no more files or ports', () => {
  const noFiles = Object.assign(new Error('connect EMFILE'), { code: 'EMFILE' });
  let calls: OpenCalls;
  let told: WebhookResponse[];
  const open = (origin = 'http://receiver') => calls.open(origin, 10_000, (response) => told.push(response));

  beforeEach(() => ([calls, told] = [new OpenCalls(), []]));

  it('postpones a call, and knows for how long it could not reach its receiver', () => {
    open().failWith(noFiles);
    open().failWith(noFiles);
    expect(told[0]).toMatchObject({ kind: 'postponed', reason: 'EMFILE: connect EMFILE', wasSent: false });
    const [first, second] = told as { forMs: number }[];
    expect(second!.forMs).toBeGreaterThan(first!.forMs);
  });

  it('counts from its next failure once an answer came, and for each receiver by itself', () => {
    open().failWith(noFiles);
    const well = open();
    well.begin(false, () => {});
    well.head(204, {});
    const before = performance.now();
    open().failWith(noFiles);
    open('http://another').failWith(noFiles);
    const sinceMs = performance.now() - before;
    for (const { forMs } of told.slice(2) as { forMs: number }[]) expect(forMs).toBeLessThanOrEqual(sinceMs);
  });

  it('has failed a call that was being sent: it may have arrived', () => {
    const sent = open();
    sent.begin(false, () => {});
    sent.failWith(Object.assign(new Error('write ENOBUFS'), { code: 'ENOBUFS' }));
    expect(told).toMatchObject([{ kind: 'unanswered', wasSent: true, isOurs: true }]);
  });
});

describe('a process that stops', () => {
  it('abandons its calls, and begins none after that', () => {
    const calls = new OpenCalls();
    const told: WebhookResponse[] = [];
    const open = () => calls.open('http://receiver', 10_000, (response) => told.push(response));
    expect(open().isOver).toBe(false);
    calls.abandonAll();
    expect(open().isOver).toBe(true);
    expect(told).toMatchObject([
      { kind: 'abandoned', wasSent: false },
      { kind: 'abandoned', wasSent: false },
    ]);
  });
});
