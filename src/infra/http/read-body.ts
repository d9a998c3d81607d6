import type { FastifyRequest } from 'fastify';
import type { IncomingMessage } from 'node:http';
import type { BodyRoom } from './body-room.js';
import { UnparsedBody } from './json-body.pipe.js';
import { ParseProblem, PayloadTooLargeProblem } from './problem.js';

type Done = (error: Error | null, body?: UnparsedBody) => void;

const nothing = Buffer.alloc(0);

/**
 * A parser of Fastify's for every body. Fastify's own keeps the pieces as they come, each an object: a body that comes
 * byte by byte would take a hundred times what is counted for it.
 */
export function bodyReader(largest: number, room: BodyRoom) {
  return (request: FastifyRequest, raw: IncomingMessage, done: Done): void => {
    const { 'content-length': announcement, 'content-type': type, 'content-encoding': encoding } = request.headers;
    const announced = announcement === undefined ? 0 : Number(announcement);
    // The rest of one that is refused is thrown away: see unread-bodies.ts.
    const refusal = announced > largest ? tooLarge() : room.refusalOf(request, announced);
    if (refusal) return done(refusal);
    let bytes = announced === 0 ? nothing : Buffer.allocUnsafe(announced);
    let length = 0;
    raw.on('data', add);
    raw.on('end', end);
    raw.on('error', fail);

    function add(piece: Buffer): void {
      const needed = length + piece.length;
      if (needed > bytes.length) {
        const size = Math.max(needed, Math.min(2 * bytes.length, largest));
        const refused = needed > largest ? tooLarge() : room.refusalOf(request, size);
        if (refused) return leave(refused);
        const larger = Buffer.allocUnsafe(size);
        bytes.copy(larger, 0, 0, length);
        bytes = larger;
      }
      piece.copy(bytes, length);
      length = needed;
    }

    function end(): void {
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
