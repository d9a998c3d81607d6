import { expect, it } from 'vitest';
import { areNamed, emptyIdentity, toOwn } from './credential-drafts.ts';

const header = (name: string, value: string) => ({ key: name, name, value });

it('of the certificate and the headers only those are sent that somebody has filled in', () => {
  expect(toOwn(emptyIdentity, [])).toEqual({});
  expect(toOwn({ ...emptyIdentity, authority: 'of the town', key: ' \n' }, [])).toEqual({
    tls: { authority: 'of the town' },
  });
  expect(toOwn(emptyIdentity, [header(' x-api-key ', ' kept as it is ')])).toEqual({
    headers: { 'x-api-key': ' kept as it is ' },
  });
});

it('a header without a name is not complete; without any header nothing is missing', () => {
  expect(areNamed([])).toBe(true);
  expect(areNamed([header('x-api-key', '')])).toBe(true);
  expect(areNamed([header('x-api-key', 'a'), header(' ', 'b')])).toBe(false);
});
