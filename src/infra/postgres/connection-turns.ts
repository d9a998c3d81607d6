import { CallerTurns } from '../caller-turns.js';
import { requestsInLine } from './postgres.metrics.js';

/**
 * Turns of requests at a pool of so many connections, TypeORM's: of changes of the catalogue, each of which keeps its
 * connection while it waits for those before it, and of searches. Without them a few hundred requests of one caller
 * took all connections (docs/decisions/0049). A quarter of them is left to everything else. Changes and searches share
 * the turns, unless there are too few for several callers: a search takes seconds, and with it every change would be
 * refused.
 */
export function connectionTurns(connections: number, longestMs: number): Record<'changes' | 'searches', CallerTurns> {
  const turns = (atOnce: number) =>
    new CallerTurns({
      atOnce,
      ofOne: Math.ceil(atOnce / 2),
      longestMs,
      busy: 'Requests of others are carried out first. Repeat this one later.',
      inLine: requestsInLine,
    });
  const atOnce = Math.floor((connections * 3) / 4);
  if (atOnce < 3) return { changes: turns(1), searches: turns(1) };
  const shared = turns(atOnce);
  return { changes: shared, searches: shared };
}
