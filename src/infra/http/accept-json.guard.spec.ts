import { describe, expect, it } from 'vitest';
import { acceptsJson } from './accept-json.guard.js';

describe('Accept', () => {
  it.each([
    [undefined, true],
    ['', true],
    ['*/*', true],
    ['application/json', true],
    ['application/*', true],
    ['application/json; charset=utf-8', true],
    ['APPLICATION/JSON', true],
    ['text/html, application/xhtml+xml, */*;q=0.8', true],
    ['text/html, application/json;q=0.1', true],
    ['application/problem+json, application/json', true],
    ['application/problem+json', true],
    ['Application/Problem+JSON;q=0.5, text/html', true],
    ['application/problem+json;q=0, */*', true],
    ['text/html', false],
    ['application/xml', false],
    ['application/problem+json;q=0', false],
    ['application/problem+json, application/json;q=0', false],
    ['application/json;q=0', false],
    ['application/json;q=0, */*', false],
    ['*/*;q=0', false],
    ['application/*;q=0, */*;q=1', false],
    ['nonsense', false],
    ['application/json;q=nonsense', false],
  ])('%j accepts JSON: %s', (accept, isAccepted) => {
    expect(acceptsJson(accept)).toBe(isAccepted);
  });
});
