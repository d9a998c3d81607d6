import { expect, it } from 'vitest';
import { characteristicValue, filtersOf, guessesFor, queryOf, readTyped, readValue, unfinishedOf } from './criteria.ts';

const id = '01890a5d-ac96-774b-bcce-b302099a8057';

it('an address that names a replay asks for what that replay sent, and shows it as a filter', () => {
  const state = { replay: id, state: 'delivered' };
  expect(queryOf(state)).toEqual({ replay: id, state: 'delivered' });
  expect(filtersOf(state)).toContainEqual({ criterion: 'replay', value: id });
});

it('every filter that is shown is asked for: of two where there can be one, the API refuses both', () => {
  const state = { state: ['failed', 'held'], channel: ['cases'], characteristic: 'kind:permit' };
  expect(queryOf(state)).toEqual({ state: ['failed', 'held'], channel: 'cases', characteristic: ['kind:permit'] });
  expect(filtersOf(state).map(({ value }) => value)).toEqual(['failed', 'held', 'cases', 'kind:permit']);
});

it('a replay is sought by its id alone', () => {
  expect(readTyped(`replay:${id.toUpperCase()}`)).toEqual({ criterion: 'replay', value: id });
  expect(readValue('replay', 'the one of yesterday')).toEqual({ wrong: 'badId' });
});

it.each([
  ['kind', 'a:b', 'kind:a:b'],
  ['urn:nl:zaak', '1', String.raw`urn\:nl\:zaak:1`],
  [String.raw`a\b`, '1', String.raw`a\\b:1`],
])('a characteristic %j of %j is sought as %j, which is taken when it is typed', (name, value, text) => {
  expect(characteristicValue(name, value)).toBe(text);
  expect(readValue('characteristic', text)).toEqual({ value: text });
  expect(guessesFor(text)).toEqual(['characteristic']);
});

it('a characteristic that no address has room for, or without a name, is not sought', () => {
  expect(characteristicValue('n'.repeat(6000), 'v'.repeat(1000))).toBeDefined();
  expect(characteristicValue('n'.repeat(7000), 'v'.repeat(1000))).toBeUndefined();
  expect(characteristicValue('é'.repeat(2000), 'v')).toBeUndefined();
  expect(characteristicValue('', 'v')).toBeUndefined();
  expect(readValue('characteristic', String.raw`urn\:zaak`)).toEqual({ wrong: 'badCharacteristic' });
});

it('a time with a year of two digits is none, and seeks nothing', () => {
  expect(readValue('acceptedFrom', '0026-11-28T02:00')).toEqual({ wrong: 'badTime' });
});

it.each([
  [
    { channel: 'cases', state: 'queued', acceptedFrom: '2026-11-28T02:00:00.000Z' },
    { what: 'unfinished', channel: 'cases', state: 'queued', acceptedFrom: '2026-11-28T02:00:00.000Z', count: 'yes' },
  ],
  // There is no such list: it is refused.
  [{ channel: ['cases', 'decisions'] }, undefined],
  [{ channel: 'cases', publisher: 'a' }, undefined],
  [{ channel: 'cases', characteristic: 'kind:permit' }, undefined],
  [{ channel: 'cases', state: 'failed' }, undefined],
  [{}, undefined],
])('what is unfinished of a list can be cancelled where a selection can mean the same: %j', (address, search) => {
  expect(unfinishedOf(address)).toEqual(search);
});
