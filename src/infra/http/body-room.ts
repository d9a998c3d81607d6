import type { FastifyReply, FastifyRequest } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { UnavailableProblem } from './problem.js';

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
  private taken = 0;
  constructor(private readonly most: number) {}

  take(bytes: number): boolean {
    if (this.taken + bytes > this.most) return false;
    this.taken += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.taken -= bytes;
  }
}

/** A large body has it until its request is over. */
class Lent {
  bytes = 0;
  private readonly parts: { share: Share; bytes: number }[] = [];
  constructor(readonly answer: ServerResponse) {}

  /** @returns whether there is as much in the share */
  takes(share: Share, bytes: number): boolean {
    if (!share.take(bytes)) return false;
    this.bytes += bytes;
    this.parts.push({ share, bytes });
    return true;
  }

  /** Called again, it does nothing. */
  giveBack(): void {
    for (const { share, bytes } of this.parts.splice(0)) share.giveBack(bytes);
  }
}

/**
 * The memory of a process for the large bodies of requests, which are read before it is known who sent them: callers
 * could announce any number of them, and keep back the last byte (docs/decisions/0095).
 */
export class BodyRoom {
  /** By what is in memory. Asked only of a body for which there is no room in the share of all callers. */
  isFromKnown: (request: FastifyRequest) => boolean = () => false;
  private readonly ofAll: Share;
  private readonly ofKnown = new Share(256 * mebibyte);
  private readonly lent = new WeakMap<IncomingMessage, Lent>();

  /** @param largest that a body may be */
  constructor(largest: number) {
    this.ofAll = new Share(Math.max(32 * mebibyte, largest));
  }

  /** Before a body is read: its reader is not told of the answer. */
  expect({ headers, raw }: FastifyRequest, reply: FastifyReply): void {
    const mayBeLarge = headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > uncounted;
    if (mayBeLarge) this.lent.set(raw, new Lent(reply.raw));
  }

  /**
   * Why a body of so many bytes cannot be kept now; undefined: it can. One that is refused is not asked about again.
   * @param bytes of the body altogether, as far as they are announced or have come
   */
  refusalOf(request: FastifyRequest, bytes: number): UnavailableProblem | undefined {
    if (bytes <= uncounted) return undefined;
    const { raw } = request;
    const lent = this.lent.get(raw);
    if (!lent || bytes <= lent.bytes) return undefined;
    const more = bytes - lent.bytes;
    if (lent.bytes === 0) lent.answer.once('close', () => lent.giveBack()); // also of one in line: see queued-answers.ts
    // Of a connection that has ended, nobody would give it back.
    const isThere = !raw.socket.destroyed && !lent.answer.destroyed;
    const hasRoom =
      isThere && (lent.takes(this.ofAll, more) || (this.isFromKnown(request) && lent.takes(this.ofKnown, more)));
    if (hasRoom) return undefined;
    lent.giveBack();
    const detail = 'Bodies of other requests take all the room for large ones. Nothing was done.';
    return new UnavailableProblem(detail, retryAfterSeconds, undefined, 'too-many-bodies');
  }
}
