import { MaybeDoneProblem, ProblemError } from './problem.js';

/**
 * Reads what a request has changed, for its answer.
 * @throws {MaybeDoneProblem} where that fails: the change is committed, whatever the error says
 */
export async function readBack<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw error instanceof ProblemError ? error : new MaybeDoneProblem(error);
  }
}
