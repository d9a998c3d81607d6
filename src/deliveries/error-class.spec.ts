import { describe, expect, it } from 'vitest';
import { classified } from '../../test/support/classified-errors.js';
import { errorClassOf } from './error-class.js';

describe('the error class', () => {
  it.each(classified)('is %s of status %s and error %j', (errorClass, lastStatus, lastError, state = 'waiting') => {
    expect(errorClassOf({ lastStatus, lastError, state })).toBe(errorClass);
  });
});
