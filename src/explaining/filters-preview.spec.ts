import { describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { FiltersPreview } from './filters-preview.js';

describe('a preview of filters', () => {
  it('passes over what they exclude by a name that is sent with adjacent capitals, and shows each name once', () => {
    const preview = new FiltersPreview([{ channel: 'zaken', filters: { punt_x_y: '1' } }]);
    for (const value of ['1', '2']) {
      const body = JSON.stringify({ kenmerken: { puntXY: value, objectType: 'x' } });
      preview.look({ id: randomUUID(), channel: 'zaken', body });
    }
    expect(preview.result(0, 0, true)).toMatchObject({
      matched: 1,
      looked: 2,
      notRead: 0,
      sample: [{ characteristics: { punt_xy: '1', object_type: 'x' } }],
    });
  });
});
