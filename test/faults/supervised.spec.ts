import { describe, expect, it } from 'vitest';
import { readProcesses, wrongWithEnded } from '../../scripts/faults/supervised.mjs';

const listening = (pid: number) => JSON.stringify({ level: 'info', event: 'process.listening', pid });
const ended = (pid: number, signal: string | null) =>
  JSON.stringify({ event: 'process.ended', process: 1, pid, status: signal === null ? 1 : null, signal });

describe('the supervised processes, in the fault suite', () => {
  it('are those that listen and have not ended, as the log tells', () => {
    const lines = [listening(11), listening(12), '{"event":"notification.accepted"}', ended(11, 'SIGKILL'), 'no event'];
    expect(readProcesses(lines)).toEqual({
      listening: [12],
      ended: [{ pid: 11, status: null, signal: 'SIGKILL' }],
    });
    expect(readProcesses([...lines, listening(13)]).listening).toEqual([12, 13]);
  });

  it('are read although the last line is not whole yet', () => {
    expect(readProcesses([listening(11), listening(12).slice(0, -1)]).listening).toEqual([11]);
  });

  it('have ended as they should where a scenario killed them, and not otherwise', () => {
    const { ended: all } = readProcesses([ended(11, 'SIGKILL'), ended(12, 'SIGKILL'), ended(13, null)]);
    expect(wrongWithEnded(all, new Set([11, 13]))).toEqual([
      'process 12 ended by itself, by SIGKILL',
      'process 13 ended by itself, with status 1',
    ]);
  });
});
