import { describe, expect, it } from 'vitest';
import { originFormOf } from './origin-form.js';

describe('the target of a request', () => {
  it.each([
    ['/api/v1/kanaal?naam=a', '/api/v1/kanaal?naam=a'],
    ['//nothing', '//nothing'],
    ['http://broker:8000/api/v1/kanaal?naam=http://a', '/api/v1/kanaal?naam=http://a'],
    ['HTTPS://broker/api', '/api'],
    ['http://broker', '/'],
    ['http://broker?a=b', '/?a=b'],
    ['*', '*'],
    ['broker:8000', 'broker:8000'],
  ])('%s is read as %s', (target, path) => {
    expect(originFormOf(target)).toBe(path);
  });
});
