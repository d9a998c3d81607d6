import { describe, expect, it } from 'vitest';
import type { LookupFunction } from 'node:net';
import { sharedLookup } from './shared-lookup.js';

describe('the lookup of a name', () => {
  const asked: { hostname: string; answer: Parameters<LookupFunction>[2] }[] = [];
  const lookUp = sharedLookup((hostname, _, answer) => void asked.push({ hostname, answer }));
  const found: unknown[] = [];
  const want = (hostname: string, options = {}) =>
    lookUp(hostname, options, (error, address) => void found.push(error?.message ?? address));

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
});
