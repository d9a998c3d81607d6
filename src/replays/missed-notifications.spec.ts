import { describe, expect, it } from 'vitest';
import { matcherOf } from './missed-notifications.js';

const wants = (filters: Record<string, string>) => matcherOf({ channels: [{ channel: 'zaken', filters }] });
const stored = (characteristics: Record<string, string>) => ({ channel: 'zaken', characteristics });

describe('a replay of all that a subscription would have got', () => {
  it('passes over what its filters exclude, also by a name that is sent with adjacent capitals', () => {
    const matches = wants({ punt_x_y: '1' });
    expect(matches(stored({ puntXY: '1' }))).toBe(true);
    expect(matches(stored({ puntXY: '2' }))).toBe(false);
    expect(matches(stored({ puntXY: '1', puntXy: '2' }))).toBe(true);
    expect(matches(stored({ puntXY: '2', puntXy: '1' }))).toBe(false);
    expect(matches(stored({ other: '2' }))).toBe(true);
  });
});
