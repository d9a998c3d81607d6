import { describe, expect, it } from 'vitest';
import { textOf } from './utf8-text.js';

describe('the text of a file', () => {
  it('has no mark in front, and keeps all else', () => {
    expect(textOf(Buffer.from('\ufeffÉén\ufeff 通知 👩‍💻\0\r\n'))).toBe('Één\ufeff 通知 👩‍💻\0\r\n');
    expect(textOf(Buffer.from('\ufeff'))).toBe('');
  });

  it.each([
    ['Latin-1', Buffer.from('geheim é', 'latin1')],
    ['UTF-16', Buffer.from('\ufeffgeheim', 'utf16le')],
    ['random bytes', Buffer.from('9fc3a2f0', 'hex')],
    ['a text that is cut in a character', Buffer.from('é').subarray(0, 1)],
  ])('is refused where it is %s, without showing it', (_, bytes) => {
    expect(() => textOf(bytes)).toThrow(/^it is not UTF-8$/);
  });
});
