import { describe, expect, it } from 'vitest';
import { timeline } from './timeline.js';

describe('a line of time', () => {
  it('marks each try where its logarithm is, with the first at its beginning and the last at its end', () => {
    const [marks = '', axis = ''] = timeline([0, 10, 3600, 86_400], 60).split('\n');
    expect(marks).toHaveLength(60);
    expect(marks.replaceAll('─', '')).toBe('●●●●');
    expect([marks.at(0), marks.at(-1)]).toEqual(['●', '●']);
    expect(marks.indexOf('●', 1)).toBe(axis.indexOf('10 s'));
    expect(axis).toBe('0   1 s     10 s     1 min       10 min    1 h        10 h');
  });

  it('says how many tries fall together', () => {
    expect(timeline([0, 0.1, 0.2, 100], 10)).toContain('3────');
    expect(timeline([...Array(12).keys()].map((nr) => nr / 1000).concat(100), 10)).toContain('+────');
  });

  it('has one mark where nothing is tried again', () => {
    expect(timeline([0], 20)).toBe(`●${'─'.repeat(19)}\n0`);
  });
});
