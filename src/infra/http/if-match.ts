import { createHash } from 'node:crypto';
import { ChangedMeanwhileProblem } from './problem.js';

/** The `ETag` of what an operation shows of a resource (RFC 9110 §8.8.3): the same for the same representation. */
export const entityTagOf = (representation: object): string =>
  `"${createHash('sha256').update(JSON.stringify(representation)).digest('base64url').slice(0, 22)}"`;

/**
 * For a change by somebody who has read the resource before.
 * @param ifMatch header of the request; without it, and with `*`, any state is right
 * @param current the resource as an operation would show it now
 * @throws {ChangedMeanwhileProblem} when it is none of the states that the request names
 */
export function requireMatch(ifMatch: string | undefined, current: object): void {
  if (ifMatch === undefined || ifMatch.trim() === '*') return;
  if (!namesTag(ifMatch, entityTagOf(current))) throw new ChangedMeanwhileProblem();
}

/** Whether a header with entity tags, as clients send them, names this one. */
export const namesTag = (header: string, tag: string): boolean =>
  header.split(',').some((each) => asAnswered(each) === tag);

/**
 * A proxy that compresses an answer makes its tag weak (nginx), or writes behind it how (Apache: `-gzip`). The client
 * sends it back as it got it, and it is the tag of the same representation.
 */
const asAnswered = (tag: string): string =>
  tag
    .trim()
    .replace(/^W\//, '')
    .replace(/-(gzip|br|zstd)"$/, '"');
