import { describe, expect, it } from 'vitest';
import { readAnswer } from '../../scripts/faults/postgres-proxy.mjs';

/** A message of Postgres: a letter, the length of what follows with that of the length itself, and a body. */
function message(letter: string, body = ''): Buffer {
  const bytes = Buffer.alloc(5 + body.length);
  bytes.write(letter, 0, 'latin1');
  bytes.writeInt32BE(4 + body.length, 1);
  bytes.write(body, 5, 'latin1');
  return bytes;
}

const row = message('D', 'a row with a D and a Z');
const [bound, completed, ready] = [message('2'), message('C', 'SELECT 2'), message('Z', 'I')];

describe('an answer of Postgres, as the proxy of the fault suite reads it', () => {
  it('is whole when Postgres is ready for the next query, with as many rows as came before', () => {
    expect(readAnswer(Buffer.concat([bound, row, row, completed, ready]))).toEqual({ rows: 2, isWhole: true });
    expect(readAnswer(Buffer.concat([bound, completed, ready]))).toEqual({ rows: 0, isWhole: true });
  });

  it('is not whole before, wherever it breaks off', () => {
    const whole = Buffer.concat([bound, row, completed, ready]);
    for (let length = 0; length <= whole.length - ready.length; length++)
      expect(readAnswer(whole.subarray(0, length)).isWhole).toBe(false);
  });
});
