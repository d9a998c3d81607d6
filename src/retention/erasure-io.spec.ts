import { describe, expect, it } from 'vitest';
import { checkInput } from '../infra/http/check-input.js';
import { newErasureInput } from './erasure-io.js';

describe('an erasure', () => {
  it('can be asked for by a main object as long as a notification may have', () => {
    const mainObject = `https://cases.example.org/?${'x'.repeat(900_000)}`;
    expect(checkInput(newErasureInput, { mainObject })).toEqual({ mainObject });
  });

  it.each(['', 'a\u0000b', '\ud83d'])('cannot be asked for by %j, which no notification has', (mainObject) => {
    expect(() => checkInput(newErasureInput, { mainObject })).toThrow('not valid');
  });
});
