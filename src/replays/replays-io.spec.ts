import { describe, expect, it } from 'vitest';
import { replayInput } from './replays-io.js';

describe('the times of a replay', () => {
  it.each([
    ['9999-12-31T23:59:59-05:00', '9999-12-31T00:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '1970-01-01T00:00:00.000Z'],
    ['2026-11-22T10:00:00+01:00', '2026-11-22T09:00:00.000Z'],
  ])('are of the years that answers can show: %s', (given, meant) => {
    const { startAt } = replayInput.parse({ selection: { all: true }, startAt: given });
    const { stopAt } = replayInput.parse({ selection: { all: true }, stopAt: given });
    expect([startAt?.toISOString(), stopAt?.toISOString()]).toEqual([meant, meant]);
  });
});
