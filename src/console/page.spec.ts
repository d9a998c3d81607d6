import { describe, expect, it } from 'vitest';
import { pageFor, pagePolicy } from './page.js';

const template = '<base href="__BASE__"><meta nonce="__NONCE__"><script nonce="__NONCE__"></script>';

describe('the page of the console', () => {
  it.each([
    ['', './'],
    ['overview', './'],
    ['notifications/5d9c', '../'],
    ['a/b/c', '../../'],
  ])('finds its files from /console/%s at %s', (path, base) => {
    expect(pageFor(template, path, 'n')).toContain(`<base href="${base}">`);
  });

  it('has the nonce of its policy wherever one is needed', () => {
    expect(pageFor(template, '', 'abc')).toBe('<base href="./"><meta nonce="abc"><script nonce="abc"></script>');
    expect(pagePolicy('abc')).toContain("style-src 'self' 'nonce-abc'");
  });
});
