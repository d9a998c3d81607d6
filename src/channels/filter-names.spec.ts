import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { areNamesConsistent, canonicalName, listedNames, outgoingName, shownName } from './filter-names.js';

describe('names in a reason', () => {
  it('are all there, or the first of very many', () => {
    expect(listedNames(['kind', 'region'])).toBe('kind, region');
    const many = Array.from({ length: 200_000 }, (_, nr) => `n${nr}`);
    expect(listedNames(many)).toMatch(/^n0, n1, .*, n49 and 199950 more$/);
  });
});

describe('canonical names', () => {
  it.each([
    ['object_type', 'object_type'],
    ['objectType', 'object_type'],
    ['ObjectType', 'object_type'],
    ['verantwoordelijkeOrganisatie', 'verantwoordelijke_organisatie'],
    ['zaaktype.catalogus', 'zaaktype.catalogus'],
    ['UPPER', 'upper'],
    ['objectURL', 'object_url'],
    ['URLValue', 'url_value'],
    ['Mixed_Case', 'mixed_case'],
    ['a1B2', 'a1b2'],
    ['a_1b_2', 'a1b2'],
    ['x-y', 'x-y'],
    ['with space', 'with space'],
    ['__proto__', '_proto_'],
    ['', ''],
  ])('compares %j as %j', (name, canonical) => {
    expect(canonicalName(name)).toBe(canonical);
    expect(canonicalName(canonical)).toBe(canonical);
  });

  it('stays right when there are more names than it remembers', () => {
    for (let i = 0; i < 25_000; i++) canonicalName(`someName${i}`);
    expect(canonicalName('objectType')).toBe('object_type');
  });
});

describe('consistency with the names of a channel', () => {
  const of = (...names: string[]) => new Set(names);

  it.each([
    ['no names at all', of(), of('a', 'b'), true],
    ['one of the known names', of('a'), of('a', 'b'), true],
    ['all the known names', of('a', 'b'), of('a', 'b'), true],
    ['all the known names and an unknown one', of('a', 'b', 'c'), of('a', 'b'), true],
    ['an unknown name alone', of('c'), of('a', 'b'), false],
    ['an unknown name with some of the known', of('a', 'c'), of('a', 'b'), false],
    ['any name on a channel that knows none', of('c'), of(), true],
  ])('%s', (_, names, channelNames, isConsistent) => {
    expect(areNamesConsistent(names, channelNames)).toBe(isConsistent);
  });
});

describe('outgoing names', () => {
  it.each([
    ['object_type', 'objectType'],
    ['objectType', 'objectType'],
    ['a_b_c', 'aBC'],
    ['x_1', 'x1'],
    ['zaaktype.catalogus', 'zaaktype.catalogus'],
    ['UPPER', 'UPPER'],
    ['Mixed_Case', 'Mixed_Case'],
    ['_private', '_private'],
    ['x-y', 'x-y'],
    ['with space', 'with space'],
    ['__proto__', '__proto__'],
  ])('sends %j as %j', (name, outgoing) => {
    expect(outgoingName(name)).toBe(outgoing);
  });
});

describe('names of filters as clients are shown them', () => {
  it.each([
    ['object_type', 'objectType'],
    ['x_1', 'x1'],
    ['naam_b_v', 'naam_b_v'],
    ['naamBV', 'naamBV'],
  ])('shows %j as %j', (name, shown) => {
    expect(shownName(name)).toBe(shown);
  });

  it('are the same names, whatever their spelling', () => {
    const words = fc.array(fc.constantFrom('a', 'bc', 'X', 'aB', '1', 'é', '-', ''), { maxLength: 6 });
    fc.assert(
      fc.property(words, (word) => {
        const name = word.join('_');
        expect(canonicalName(shownName(name))).toBe(canonicalName(name));
      }),
      { numRuns: 1000 },
    );
  });
});
