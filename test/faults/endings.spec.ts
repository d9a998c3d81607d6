import { describe, expect, it } from 'vitest';
import { wrongWithEnding } from '../../scripts/faults/endings.mjs';

const killed = { status: null, signal: 'SIGKILL' } as const;
const terminated = { status: null, signal: 'SIGTERM' } as const;
const done = { status: 0, signal: null };
const failed = { status: 1, signal: null };

describe('the ends of processes, in the fault suite', () => {
  it('are right where a scenario killed one, or told it to end and it did so in good order', () => {
    expect(wrongWithEnding('SIGKILL', killed)).toBeUndefined();
    expect(wrongWithEnding('SIGTERM', done)).toBeUndefined();
  });

  it('are wrong where nobody asked for one, however it came about', () => {
    expect(wrongWithEnding(undefined, failed)).toBe('ended by itself, with status 1');
    expect(wrongWithEnding(undefined, done)).toBe('ended by itself, with status 0');
    expect(wrongWithEnding(undefined, killed)).toBe('ended by itself, by SIGKILL');
  });

  it('are wrong where one had ended before the scenario killed it', () => {
    expect(wrongWithEnding('SIGKILL', failed)).toBe('ended by itself, with status 1');
  });

  it.each([
    [failed, 'with status 1'],
    [killed, 'by SIGKILL'],
    [terminated, 'by SIGTERM'],
  ])('are wrong where one was told to end, and did not do so in good order', (ending, how) => {
    expect(wrongWithEnding('SIGTERM', ending)).toBe(`was told to end in good order, and ended ${how}`);
  });
});
