import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { LookupFunction } from 'node:net';
import { sharedLookup, type SharedLookup } from './shared-lookup.js';

describe('the lookup of a name', () => {
  let asked: { hostname: string; answer: Parameters<LookupFunction>[2] }[];
  let found: unknown[];
  let now: number;
  let shared: SharedLookup;
  const want = (hostname: string, options = {}) =>
    shared.lookUp(hostname, options, (error, address) => void found.push(error?.message ?? address));

  const names = () => asked.map(({ hostname }) => hostname);
  /** Asks for each, and is answered quickly. */
  function prove(...hostnames: string[]): void {
    for (const hostname of hostnames) {
      want(hostname);
      asked.pop()!.answer(null, '192.0.2.9', 4);
    }
  }

  beforeEach(() => {
    [asked, found, now] = [[], [], 0];
    const ask: LookupFunction = (hostname, _, answer) => {
      if (hostname === '') throw new Error('no name');
      asked.push({ hostname, answer });
    };
    const bounds = { all: 9, shared: 7, slow: 2, unproven: 4, unprovenOfDomain: 2, ofDomain: 3 };
    shared = sharedLookup(ask, bounds, () => now);
  });

  it('is made once for all that want it at the same time, and again for the next', () => {
    want('slow.example');
    want('slow.example');
    want('other.example');
    want('slow.example', { family: 6 });
    expect(names()).toEqual(['slow.example', 'other.example', 'slow.example']);
    asked[0]!.answer(null, '192.0.2.1', 4);
    asked[1]!.answer(new Error('ENOTFOUND'), '');
    expect(found).toEqual(['192.0.2.1', '192.0.2.1', 'ENOTFOUND']);
    want('slow.example');
    expect(asked).toHaveLength(4);
  });

  it('that is slow waits while as many others are asked for as may be, and no quick one waits for them', () => {
    const slow = ['www.one.example', 'www.two.example', 'www.three.example'];
    for (const name of slow) want(name);
    now += 1001;
    for (const { answer } of asked.splice(0)) answer(new Error('EAI_AGAIN'), '');
    for (const name of slow) want(name);
    want('quick.example');
    want('www.three.example');
    expect(names()).toEqual(['www.one.example', 'www.two.example', 'quick.example']);
    found.length = 0;
    now += 5000;
    asked[1]!.answer(new Error('EAI_AGAIN'), '');
    expect(names().slice(3)).toEqual(['www.three.example']);
    asked[3]!.answer(null, '192.0.2.3', 4);
    expect(found).toEqual(['EAI_AGAIN', '192.0.2.3', '192.0.2.3']);
    asked[0]!.answer(new Error('EAI_AGAIN'), '');
    // It was quick this time, and is slow no more.
    asked.length = 0;
    for (const name of slow) want(name);
    expect(asked).toHaveLength(3);
  });

  it('of which nothing is known waits while two others of its domain are asked for, and those of another domain do not', () => {
    for (const name of ['a', 'b', 'c', 'd']) want(`${name}.silent.example`);
    want('hooks.well.example');
    expect(names()).toEqual(['a.silent.example', 'b.silent.example', 'hooks.well.example']);
    now += 10_000;
    asked[0]!.answer(new Error('EAI_AGAIN'), '');
    expect(names().slice(3)).toEqual(['c.silent.example']);
  });

  it('that was quick waits for no name of which nothing is known, and for few others of its own domain', () => {
    prove('a.well.example', 'b.well.example', 'c.well.example', 'd.well.example');
    for (const domain of ['one', 'two', 'three']) for (const name of ['a', 'b']) want(`${name}.${domain}.example`);
    expect(names()).toHaveLength(4);
    for (const name of ['a', 'b', 'c', 'd']) want(`${name}.well.example`);
    expect(names().slice(4)).toEqual(['a.well.example', 'b.well.example', 'c.well.example']);
    asked[5]!.answer(null, '192.0.2.2', 4);
    expect(names().slice(7)).toEqual(['d.well.example']);
    asked[0]!.answer(null, '192.0.2.1', 4);
    expect(names().slice(8)).toEqual(['a.three.example']);
  });

  it('waits, however quick it was, while as many are asked for as there are threads', () => {
    const others = Array.from({ length: 9 }, (_, nr) => `www.well-${nr}.example`);
    prove(...others, 'www.last.example');
    for (const name of [...others, 'www.last.example']) want(name);
    expect(names()).toEqual(others);
    expect(shared.isInLine('www.last.example')).toBe(true);
    asked[3]!.answer(null, '192.0.2.4', 4);
    expect(names().slice(9)).toEqual(['www.last.example']);
  });

  it('is made although the names of two or three other domains, which were quick, are not answered any more', () => {
    const domains = ['one', 'two', 'three'].map((name) =>
      ['a', 'b', 'c', 'd'].map((each) => `${each}.${name}.example`),
    );
    prove(...domains.flat(), 'www.well.example');
    for (const name of domains.slice(0, 2).flat()) want(name);
    expect(names()).toHaveLength(6);
    for (const name of domains[2]!) want(name);
    now += 1001;
    want('www.well.example');
    want('www.new.example');
    expect(names().slice(6)).toEqual(['a.three.example', 'www.well.example', 'www.new.example']);
  });

  it('waits no longer than it has to where the end of one other makes room for two', () => {
    const slow = ['a.one.example', 'www.two.example', 'www.three.example'];
    for (const name of slow) want(name);
    now += 1001;
    for (const { answer } of asked.splice(0)) answer(new Error('EAI_AGAIN'), '');
    // The third waits for one that was slow, the last for one of its domain: both for the first.
    for (const name of [...slow, 'b.one.example', 'c.one.example']) want(name);
    expect(names()).toEqual(['a.one.example', 'www.two.example', 'b.one.example']);
    asked[0]!.answer(null, '192.0.2.1', 4);
    expect(names().slice(3)).toEqual(['www.three.example', 'c.one.example']);
  });

  it('that was quick itself is made beside two of its domain that hang', () => {
    prove('ok.town.example');
    want('a.town.example');
    now += 1001;
    asked.pop()!.answer(new Error('EAI_AGAIN'), '');
    for (const name of ['a', 'b', 'c', 'ok']) want(`${name}.town.example`);
    expect(names()).toEqual(['a.town.example', 'b.town.example', 'ok.town.example']);
  });

  it('counts as that of an unproven name for ten minutes after another one of its domain was slow, also when some are quick', () => {
    const silent = ['a', 'b', 'c'].map((name) => `${name}.silent.example`);
    prove(...silent);
    want(silent[0]!);
    now += 1001;
    asked.pop()!.answer(new Error('EAI_AGAIN'), '');
    /** Those that are asked for beside all of the domain, of two of which nothing is known. */
    const askedBeside = (...unknown: string[]) => {
      prove(silent[0]!);
      for (const name of [...silent, ...unknown]) want(name);
      const found = names().slice(silent.length);
      while (asked.length > 0) asked.shift()!.answer(null, '192.0.2.1', 4);
      return found;
    };
    expect(askedBeside('www.one.example', 'www.two.example')).toEqual(['www.one.example']);
    now += 600_000;
    expect(askedBeside('www.three.example', 'www.four.example')).toEqual(['www.three.example']);
    now += 1;
    expect(askedBeside('www.five.example', 'www.six.example')).toEqual(['www.five.example', 'www.six.example']);
  });

  it('is given up after some seconds in line, as a trouble of ours, and is not asked for afterwards', () => {
    vi.useFakeTimers();
    try {
      for (const name of ['a', 'b', 'c']) want(`${name}.silent.example`);
      want('c.silent.example');
      vi.advanceTimersByTime(2999);
      expect(found).toEqual([]);
      vi.advanceTimersByTime(1);
      expect(found).toEqual(['too many names are being looked up', 'too many names are being looked up']);
      asked[0]!.answer(new Error('EAI_AGAIN'), '');
      expect(names()).toEqual(['a.silent.example', 'b.silent.example']);
      want('c.silent.example');
      vi.advanceTimersByTime(3000);
      expect(names().slice(2)).toEqual(['c.silent.example']);
      expect(found.slice(3)).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('tells whether it is in line, in whatever ways the name is wanted', () => {
    for (const name of ['a', 'b', 'c']) want(`${name}.silent.example`);
    want('c.silent.example', { family: 6 });
    const inLine = () => ['a', 'c'].filter((name) => shared.isInLine(`${name}.silent.example`));
    expect(inLine()).toEqual(['c']);
    asked[0]!.answer(null, '192.0.2.1', 4);
    expect(inLine()).toEqual(['c']);
    asked[1]!.answer(null, '192.0.2.1', 4);
    expect(inLine()).toEqual([]);
  });

  it('is answered where it cannot even be asked for', () => {
    want('');
    want('');
    expect(found).toEqual(['no name', 'no name']);
  });
});
