import type { FastifyRequest } from 'fastify';
import type { IncomingMessage } from 'node:http';
import type { BodyRoom } from './body-room.js';
import { UnparsedBody } from './json-body.pipe.js';
import { ParseProblem, PayloadTooLargeProblem, type ProblemError } from './problem.js';

type Done = (error: Error | null, body?: UnparsedBody) => void;

const nothing = Buffer.alloc(0);

/**
 * So many bytes above the limit are read of a body that is too large. Its caller reads the answer when it has written
 * all; before, its connection would be closed with bytes unread, which resets it, and the answer is lost.
 */
const mostThrownAway = 32 * 1024 * 1024;

/**
 * A parser of Fastify's for every body. Fastify's own keeps the pieces as they come, each an object: a body that comes
 * byte by byte would take a hundred times what is counted for it.
 */
export function bodyReader(largest: number, room: BodyRoom) {
  return (request: FastifyRequest, raw: IncomingMessage, done: Done): void => {
    const { 'content-length': announcement, 'content-type': type, 'content-encoding': encoding } = request.headers;
    const announced = announcement === undefined ? 0 : Number(announcement);
    if (announced > largest + mostThrownAway) return done(tooLarge());
    // One that is refused is read to its end, and not kept: as long as a caller writes, it may not see the answer.
    let refusal: ProblemError | undefined = announced > largest ? tooLarge() : room.refusalOf(request, announced);
    let bytes = refusal || announced === 0 ? nothing : Buffer.allocUnsafe(announced);
    let length = 0;
    raw.on('data', add);
    raw.on('end', end);
    raw.on('error', fail);

    function add(piece: Buffer): void {
      const needed = length + piece.length;
      if (needed > largest) return throwAway(needed);
      if (needed > bytes.length) grow(needed);
      if (!refusal) piece.copy(bytes, length);
      length = needed;
    }

    function throwAway(needed: number): void {
      if (length <= largest) [refusal, bytes] = [tooLarge(), nothing];
      length = needed;
      if (length > largest + mostThrownAway) leave(refusal!);
    }

    function grow(needed: number): void {
      const size = Math.max(needed, Math.min(2 * bytes.length, largest));
      refusal ??= room.refusalOf(request, size);
      const larger = refusal ? nothing : Buffer.allocUnsafe(size);
      bytes.copy(larger, 0, 0, length);
      bytes = larger;
    }

    function end(): void {
      if (refusal) return leave(refusal);
      if (length < announced) return leave(new ParseProblem('The body is shorter than its Content-Length.'));
      leave(null, new UnparsedBody(type, encoding, length === bytes.length ? bytes : bytes.subarray(0, length)));
    }

    /** The caller went away. */
    function fail(error: Error): void {
      leave(new ParseProblem(error.message, error));
    }

    function leave(error: Error | null, body?: UnparsedBody): void {
      raw.off('data', add).off('end', end).off('error', fail);
      done(error, body);
    }
  };
}

const tooLarge = () => new PayloadTooLargeProblem('The body is larger than this server accepts.');
