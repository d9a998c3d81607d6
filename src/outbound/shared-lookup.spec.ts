import { beforeEach, describe, expect, it } from 'vitest';
import type { LookupFunction } from 'node:net';
import { sharedLookup } from './shared-lookup.js';

describe('the lookup of a name', () => {
  let asked: { hostname: string; answer: Parameters<LookupFunction>[2] }[];
  let found: unknown[];
  let now: number;
  let lookUp: LookupFunction;
  const want = (hostname: string, options = {}) =>
    lookUp(hostname, options, (error, address) => void found.push(error?.message ?? address));

  beforeEach(() => {
    [asked, found, now] = [[], [], 0];
    const ask: LookupFunction = (hostname, _, answer) => {
      if (hostname === '') throw new Error('no name');
      asked.push({ hostname, answer });
    };
    lookUp = sharedLookup(ask, { mostSlow: 2, now: () => now });
  });

  it('is made once for all that want it at the same time, and again for the next', () => {
    want('slow.example');
    want('slow.example');
    want('other.example');
    want('slow.example', { family: 6 });
    expect(asked.map(({ hostname }) => hostname)).toEqual(['slow.example', 'other.example', 'slow.example']);
    asked[0]!.answer(null, '192.0.2.1', 4);
    asked[1]!.answer(new Error('ENOTFOUND'), '');
    expect(found).toEqual(['192.0.2.1', '192.0.2.1', 'ENOTFOUND']);
    want('slow.example');
    expect(asked).toHaveLength(4);
  });

  it('that is slow waits while as many others are asked for as may be, and no quick one waits for them', () => {
    const slow = ['one.example', 'two.example', 'three.example'];
    for (const name of slow) want(name);
    now += 1001;
    for (const { answer } of asked.splice(0)) answer(new Error('EAI_AGAIN'), '');
    for (const name of slow) want(name);
    want('quick.example');
    want('three.example');
    expect(asked.map(({ hostname }) => hostname)).toEqual(['one.example', 'two.example', 'quick.example']);
    found.length = 0;
    now += 5000;
    asked[1]!.answer(new Error('EAI_AGAIN'), '');
    expect(asked.map(({ hostname }) => hostname).slice(3)).toEqual(['three.example']);
    asked[3]!.answer(null, '192.0.2.3', 4);
    expect(found).toEqual(['EAI_AGAIN', '192.0.2.3', '192.0.2.3']);
    asked[0]!.answer(new Error('EAI_AGAIN'), '');
    // It was quick this time, and is slow no more.
    asked.length = 0;
    for (const name of slow) want(name);
    expect(asked).toHaveLength(3);
  });

  it('is answered where it cannot even be asked for', () => {
    want('');
    want('');
    expect(found).toEqual(['no name', 'no name']);
  });
});
