import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import type { Channel } from '../channels/channel.js';
import { asJudged, characteristicsOf, kenmerkenOf } from './characteristics-of.js';
import { parseNotification } from './parse-notification.js';

const channel: Channel = {
  id: 'k',
  name: 'k',
  documentationLink: '',
  filters: [],
  canonicalFilters: new Set(),
  deduplication: null,
  maxAgeSeconds: null,
  bodyRetentionDays: null,
};
const names = fc.string({ unit: fc.constantFrom('a', 'b', '_', '1', 'X', 'Y', 'é', '-'), minLength: 1, maxLength: 8 });

/** As publishing judges them, and as it writes them. */
function published(given: [name: string, value: string][]) {
  const fields = { kanaal: 'k', hoofdObject: 'http://a/b', resource: 'r', resourceUrl: 'http://a/c', actie: 'create' };
  const raw = { ...fields, aanmaakdatum: '2025-01-01T10:00:00Z', kenmerken: Object.fromEntries(given) };
  const parsed = parseNotification(raw, { findChannel: () => channel, now: Date.now(), leewaySeconds: 0 });
  if (parsed.kind !== 'parsed') throw new Error('refused');
  const { characteristics, body } = parsed.notification;
  return { judged: characteristics, kenmerken: kenmerkenOf(body)! };
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
    [
      'the same ones, when both would be sent in the same spelling',
      [
        ['punt_x_y', '1'],
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
