import { describe, expect, it } from 'vitest';
import { Line, type InLine } from './line.js';

interface Named extends InLine {
  name: string;
}

/** `q` from the queue, `h` handed over, one of them a millisecond, from 1 ms on. */
function lineOf(...names: string[]): Line<Named> {
  const line = new Line<Named>();
  for (const [nr, name] of names.entries()) line.push({ name, since: nr + 1, isHandedOver: name.startsWith('h') });
  return line;
}

const namesOf = (taken: readonly Named[]) => taken.map(({ name }) => name);

function drain(line: Line<Named>): string[] {
  const taken: Named[] = [];
  for (let next = line.next(); next; next = line.next()) taken.push(next);
  return namesOf(taken);
}

describe('a line', () => {
  it('lets deliveries from the queue and those that were handed over take turns, the first of each kind first', () => {
    expect(drain(lineOf('h1', 'h2', 'h3', 'q1', 'q2'))).toEqual(['q1', 'h1', 'q2', 'h2', 'h3']);
  });

  it('goes on with one kind where the other has none, and keeps nobody waiting for a turn', () => {
    const line = lineOf('h1', 'h2');
    expect(namesOf([line.next()!, line.next()!])).toEqual(['h1', 'h2']);
    line.push({ name: 'q1', since: 9, isHandedOver: false });
    expect([line.length, line.lengthOf(false), line.lengthOf(true)]).toEqual([1, 1, 0]);
    expect(drain(line)).toEqual(['q1']);
  });

  it('gives all, and those that have waited since a time', () => {
    const line = lineOf('h1', 'q1', 'h2', 'q2');
    expect(namesOf(line.takeSince(2))).toEqual(['q1', 'h1']);
    expect(namesOf(line.takeAll())).toEqual(['q2', 'h2']);
    expect(line.length).toBe(0);
  });

  it('gives what comes too late, of each kind behind as many as are sent in time beside the other', () => {
    const line = lineOf('h1', 'h2', 'h3', 'h4', 'h5', 'q1', 'q2', 'q3');
    // Of four, two are from the queue; these leave room for four of six.
    expect(namesOf(line.takeLateSince(8, { fromQueue: 4, handedOver: 6 }))).toEqual(['q3', 'h5']);
    expect(drain(line)).toEqual(['q1', 'h1', 'q2', 'h2', 'h3', 'h4']);
  });

  it('lets what has come since then wait, in the place of what comes too late', () => {
    const line = lineOf('q1', 'q2', 'q3', 'q4');
    expect(namesOf(line.takeLateSince(3, { fromQueue: 1, handedOver: 1 }))).toEqual(['q2', 'q3']);
    expect(drain(line)).toEqual(['q1', 'q4']);
  });
});
