import { describe, expect, it } from 'vitest';
import { fromCursor, toCursor } from './delivery-cursor.js';

const key = {
  notificationId: '019a9f3e-8c00-7000-8000-0123456789ab',
  subscriptionId: '5c5d28f3-6d24-4fd9-b2f8-2b7e3e5f5a01',
};

describe('the cursor of a list of deliveries', () => {
  it('reads back as the key it was made from', () => {
    expect(fromCursor(toCursor(key))).toEqual(key);
  });

  it('needs no escaping in a URL', () => {
    expect(encodeURIComponent(toCursor(key))).toBe(toCursor(key));
  });

  it.each([
    ['nothing', ''],
    ['text', 'the second page'],
    ['a shorter one', toCursor(key).slice(0, -4)],
    ['a longer one', `${toCursor(key)}AAAA`],
    ['characters that a lenient decoder skips', `${toCursor(key).slice(0, 5)}*${toCursor(key).slice(5)}`],
    ['another alphabet', `${toCursor(key)}=`],
  ])('is not %s', (_what, text) => {
    expect(fromCursor(text)).toBeUndefined();
  });
});
