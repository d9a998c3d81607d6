import type { FastifyReply, FastifyRequest } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { UnavailableProblem, UnexpectedProblem } from './problem.js';

declare module 'fastify' {
  interface FastifyInstance {
    /** Of all bodies that this server reads. */
    bodies: BodyRoom;
  }
}

const mebibyte = 1024 * 1024;

/** As much as headers may take. That of a body is not counted, so most publications cost nothing here. */
const uncounted = 16 * 1024;
const retryAfterSeconds = 5;

/** For the bodies of some callers together. */
class Share {
  taken = 0;
  constructor(private readonly most: number) {}

  hasRoomFor(bytes: number): boolean {
    return this.taken + bytes <= this.most;
  }
}

/** A large body has it until its request is over. */
class Lent {
  bytes = 0;
  private readonly parts: { share: Share; bytes: number }[] = [];
  constructor(readonly answer: ServerResponse) {}

  /** @returns whether there is as much in each of the shares */
  takes(bytes: number, ...shares: readonly Share[]): boolean {
    if (!shares.every((share) => share.hasRoomFor(bytes))) return false;
    this.bytes += bytes;
    for (const share of shares) {
      share.taken += bytes;
      this.parts.push({ share, bytes });
    }
    return true;
  }

  /** Called again, it does nothing. */
  giveBack(): void {
    for (const { share, bytes } of this.parts.splice(0)) share.taken -= bytes;
  }
}

/**
 * The memory of a process for the large bodies of requests, which are read before it is known who sent them: callers
 * could announce any number of them, and keep back the last byte (docs/decisions/0095).
 */
export class BodyRoom {
  /**
   * The client id of the application that sends it, by what is in memory; undefined: not known. Asked only of a body
   * for which there is no room in the share of all callers.
   */
  clientOf: (request: FastifyRequest) => string | undefined = () => undefined;
  private readonly ofAll: Share;
  private readonly ofKnown: Share;
  /** Those of one application, so that it leaves room for the others. */
  private readonly byClient = new Map<string, Share>();
  private readonly lent = new WeakMap<IncomingMessage, Lent>();

  /** @param largest that a body may be */
  constructor(private readonly largest: number) {
    this.ofAll = new Share(Math.max(32 * mebibyte, largest));
    this.ofKnown = new Share(Math.max(256 * mebibyte, 4 * largest));
  }

  /** Before a body is read: its reader is not told of the answer. */
  expect({ headers, raw }: FastifyRequest, reply: FastifyReply): void {
    const mayBeLarge = headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > uncounted;
    if (mayBeLarge) this.lent.set(raw, new Lent(reply.raw));
  }

  /**
   * Why a body of so many bytes cannot be kept now; undefined: it can. One that is refused is not asked about again.
   * One that was not expected is refused: nothing would limit how many of those there are.
   * @param bytes of the body altogether, as far as they are announced or have come
   */
  refusalOf(request: FastifyRequest, bytes: number): UnavailableProblem | UnexpectedProblem | undefined {
    if (bytes <= uncounted) return undefined;
    const { raw } = request;
    const lent = this.lent.get(raw);
    if (!lent) return new UnexpectedProblem(new Error('A large body came that was not expected.'));
    if (bytes <= lent.bytes) return undefined;
    const more = bytes - lent.bytes;
    if (lent.bytes === 0) lent.answer.once('close', () => lent.giveBack()); // also of one in line: see queued-answers.ts
    // Of a connection that has ended, nobody would give it back.
    const isThere = !raw.socket.destroyed && !lent.answer.destroyed;
    if (isThere && (lent.takes(more, this.ofAll) || this.lendToKnown(request, lent, more))) return undefined;
    lent.giveBack();
    const detail = 'Bodies of other requests take all the room for large ones. Nothing was done.';
    return new UnavailableProblem(detail, retryAfterSeconds, undefined, 'too-many-bodies');
  }

  private lendToKnown(request: FastifyRequest, lent: Lent, bytes: number): boolean {
    const client = this.clientOf(request);
    if (client === undefined) return false;
    for (const [id, { taken }] of this.byClient) if (taken === 0) this.byClient.delete(id);
    const own = this.byClient.get(client) ?? new Share(Math.max(64 * mebibyte, this.largest));
    this.byClient.set(client, own);
    return lent.takes(bytes, this.ofKnown, own);
  }
}
