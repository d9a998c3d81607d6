import type { FastifyReply, FastifyRequest } from 'fastify';

/**
 * Fastify closes a connection with the answer to a body that was refused while it was coming. Bytes that are unread
 * then reset it, and a caller that is still writing never sees the answer. So it is left open: Node reads the rest and
 * throws it away, for as long as a request may take.
 */
export function readOn(request: FastifyRequest, reply: FastifyReply): void {
  const [{ raw }, { raw: answer }] = [request, reply];
  if (raw.complete || reply.getHeader('connection') !== 'close') return;
  void reply.header('connection', 'keep-alive');
  raw.resume(); // also where the answer waits for those before it
  if (answer.shouldKeepAlive) return;
  // The caller wants it closed, or speaks HTTP/1.0: when it has written all.
  const closeAtTheEnd = () => {
    if (raw.readableEnded && answer.writableFinished) raw.socket.destroySoon();
  };
  raw.once('end', closeAtTheEnd);
  answer.once('finish', closeAtTheEnd);
}
