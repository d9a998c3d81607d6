import { describe, expect, it } from 'vitest';
import { printable, printableLines } from './printable.js';

describe('text for a terminal', () => {
  it('shows the control characters that somebody else wrote, instead of obeying them', () => {
    expect(printable('\u001b[2J\u001b]0;title\u0007 \u009b31m \u202eabc\r\n\ttab')).toBe(
      '\\u001b[2J\\u001b]0;title\\u0007 \\u009b31m \\u202eabc\\u000d\\n\\ttab',
    );
  });

  it('keeps letters of every script, and emoji', () => {
    expect(printable('Ünïcödé 通知 👩‍💻')).toBe('Ünïcödé 通知 👩‍💻');
  });

  it('keeps lines where there are several', () => {
    expect(printableLines('one\n\u001btwo')).toBe('one\n\\u001btwo');
  });
});
