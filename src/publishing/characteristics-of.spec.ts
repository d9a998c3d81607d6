import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { canonicalName, outgoingName } from '../channels/filter-names.js';
import { asJudged, characteristicsOf } from './characteristics-of.js';

const names = fc.string({ unit: fc.constantFrom('a', 'b', '_', '1', 'X', 'Y', 'é', '-'), minLength: 1, maxLength: 8 });

/** As publishing judges them, and as it writes them. */
function published(given: [name: string, value: string][]) {
  const judged = new Map<string, string>();
  const sent = new Map<string, string>();
  for (const [name, value] of given) {
    judged.set(canonicalName(name), value);
    sent.set(canonicalName(name), outgoingName(name));
  }
  return { judged, kenmerken: Object.fromEntries([...judged].map(([name, value]) => [sent.get(name)!, value])) };
}

describe('the characteristics of a stored notification', () => {
  it('have the names that publishing judged them by, whatever their spelling', () => {
    fc.assert(
      fc.property(names, (name) => {
        const { judged, kenmerken } = published([[name, 'x']]);
        expect(Object.fromEntries(asJudged(kenmerken))).toMatchObject(Object.fromEntries(judged));
      }),
      { numRuns: 2000 },
    );
  });

  it.each<[string, [string, string][], Record<string, string>]>([
    ['both names that it may have had', [['punt_x_y', '1']], { punt_x_y: '1', punt_xy: '1' }],
    ['the same ones for an acronym', [['zaakURL', '1']], { zaak_url: '1', zaak_u_r_l: '1' }],
    [
      'one name alone, where another characteristic has had the other one',
      [
        ['punt_x_y', '1'],
        ['punt_xy', '2'],
      ],
      { punt_x_y: '1', punt_xy: '2' },
    ],
    [
      'the same ones, when they were spelled otherwise',
      [
        ['puntX_y', '1'],
        ['puntXY', '2'],
      ],
      { punt_x_y: '1', punt_xy: '2' },
    ],
    ['one name, where only one is sent so', [['objectType', '1']], { object_type: '1' }],
  ])('have %s', (_, given, expected) => {
    const { kenmerken } = published(given);
    expect(Object.fromEntries(asJudged(kenmerken))).toEqual(expected);
    expect(characteristicsOf(JSON.stringify({ kenmerken }))).toEqual(asJudged(kenmerken));
  });

  it('are unknown where the body was erased, or written otherwise', () => {
    expect(characteristicsOf(null)).toBeUndefined();
    expect(characteristicsOf('{}')).toBeUndefined();
  });
});
