import { createHash } from 'node:crypto';
import { ChangedMeanwhileProblem } from './problem.js';

/** The `ETag` of what an operation shows of a resource (RFC 9110 §8.8.3): the same for the same representation. */
export const entityTagOf = (representation: object): string =>
  `"${createHash('sha256').update(JSON.stringify(representation)).digest('base64url').slice(0, 22)}"`;

/**
 * For a change by somebody who has read the resource before.
 * @param ifMatch header of the request; without it, and with `*`, any state is right
 * @param current what an operation would show of the resource now
 * @throws {ChangedMeanwhileProblem} when it is none of the states that the request names
 */
export function requireMatch(ifMatch: string | undefined, current: object): void {
  if (ifMatch === undefined || ifMatch.trim() === '*') return;
  const tags = ifMatch.split(',').map((tag) => tag.trim());
  if (!tags.includes(entityTagOf(current))) throw new ChangedMeanwhileProblem();
}
