import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { refusedCounted } from './http.counters.js';
import { ProblemFilter } from './problem.filter.js';
import { NotFoundProblem, UnavailableProblem, UnexpectedProblem, type ProblemError } from './problem.js';

const dialect = { problemPage: () => '/', problemTitle: () => '', wholeInput: '' };
const levels = ['error', 'warn', 'log', 'debug'] as const;

describe('an answer with a problem', () => {
  let lines: [level: string, line: Record<string, unknown>][];
  let filter: ProblemFilter;

  beforeEach(() => {
    lines = [];
    for (const level of levels)
      vi.spyOn(Logger.prototype, level).mockImplementation((line) => void lines.push([level, line as never]));
    filter = new ProblemFilter(dialect as never);
  });
  afterEach(() => void vi.restoreAllMocks());

  const tell = (problem: ProblemError) => filter.write(problem, 'http://a', {});
  const refusedWith = async (status: number) => {
    const { values } = await refusedCounted.get();
    return values.filter(({ labels }) => labels.status === status).reduce((sum, { value }) => sum + value, 0);
  };
  const levelsOf = () => lines.map(([level, { event, detail }]) => [level, event, detail]);

  it('that says why nothing can be done now is logged as a refusal, once of each reason, without a stack, and counted', async () => {
    const before = await refusedWith(503);
    for (const reason of ['50 listen already.', '50 listen already.', 'This process is stopping.'])
      tell(new UnavailableProblem(reason, 10));
    expect(levelsOf()).toEqual([
      ['warn', 'request.refused', '50 listen already.'],
      ['debug', 'request.refused', '50 listen already.'],
      ['warn', 'request.refused', 'This process is stopping.'],
    ]);
    expect(lines.every(([, line]) => !('error' in line))).toBe(true);
    expect((await refusedWith(503)) - before).toBe(3);
  });

  it('that something on this side failed is an error each time, with its cause', async () => {
    const [away, bug] = [new Error('away'), new Error('bug')];
    const before = await refusedWith(503);
    tell(new UnavailableProblem('The database is out of reach.', 1, away));
    tell(new UnavailableProblem('The database is out of reach.', 1, away));
    tell(new UnexpectedProblem(bug));
    expect(lines.map(([level, { event, error }]) => [level, event, error])).toEqual([
      ['error', 'request.failed', away],
      ['error', 'request.failed', away],
      ['error', 'request.failed', bug],
    ]);
    expect(await refusedWith(503)).toBe(before);
  });

  it('for a mistake of the caller is logged once of each code', () => {
    tell(new NotFoundProblem('One.'));
    tell(new NotFoundProblem('Another.'));
    expect(levelsOf()).toEqual([
      ['log', 'request.refused', 'One.'],
      ['debug', 'request.refused', 'Another.'],
    ]);
  });
});
