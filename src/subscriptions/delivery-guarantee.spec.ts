import { describe, expect, it } from 'vitest';
import { guaranteeOf } from './delivery-guarantee.js';

describe('the guarantee of a subscription', () => {
  const of = (deliveryGuarantee: 'at-least-once' | 'at-most-once' | null, ...listed: string[]) =>
    guaranteeOf({ deliveryGuarantee, ownerClientId: 'owner' }, new Set(listed));

  it.each([
    [['*'], 'at-least-once'],
    [['owner'], 'at-least-once'],
    [['other', 'owner'], 'at-least-once'],
    [['other'], 'at-most-once'],
    [[], 'at-most-once'],
  ])('is its owner’s when it has none of its own: %j', (listed, expected) => {
    expect(of(null, ...listed)).toBe(expected);
  });

  it('is its own when it has one', () => {
    expect(of('at-most-once', '*')).toBe('at-most-once');
    expect(of('at-least-once')).toBe('at-least-once');
  });
});
