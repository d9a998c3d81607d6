import { describe, expect, it } from 'vitest';
import { bytesInMemory } from './bytes-in-memory.js';

const kept = { callbackUrl: 'http://a/', auth: 'b', credentials: null, channels: [], signingKeys: 0 };
const entry = (filters: Record<string, string>) => ({ channel: 'cases', filters });

describe('the memory that a subscription takes', () => {
  it('is that of its texts, where it is about no channel', () => {
    expect(bytesInMemory(kept)).toBe(10);
    expect(bytesInMemory({ ...kept, credentials: 'x'.repeat(5000) })).toBe(5010);
  });

  it('grows with each entry and each filter, however short they are', () => {
    expect(bytesInMemory({ ...kept, channels: [entry({})] })).toBe(10 + 510);
    expect(bytesInMemory({ ...kept, channels: [entry({ type: 'a' }), entry({})] })).toBe(10 + 510 + 260 + 510);
  });

  it('grows with each of its signing keys', () => {
    expect(bytesInMemory({ ...kept, signingKeys: 15 })).toBe(10 + 15 * 800);
  });

  it('is twice as much for texts that are not Latin', () => {
    const of = (value: string) => bytesInMemory({ ...kept, channels: [entry({ type: value })] });
    expect(of('ā'.repeat(100)) - of('')).toBe(400);
    expect(of('a'.repeat(100)) - of('')).toBe(200);
  });
});
