import { ServerResponse, type IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders } from 'node:http';

/** Names and values in turn, as Node takes them. */
export type HeaderList = readonly string[];

/**
 * Answers that have these headers, unless the one who answers gives them other values. They are added where Node writes
 * the head: `setHeader` for each of them, and with one of them for all others as well, would cost two thirds of a
 * microsecond more, on each publication. Their names keep their spelling, which Fastify's `reply.header` changes.
 */
export function responseWith(headersOf: (request: IncomingMessage) => HeaderList): typeof ServerResponse {
  return class<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
    /** Fastify gives an object with names in lower case, Node itself nothing. */
    override writeHead(
      status: number,
      reason?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
      headers?: OutgoingHttpHeaders | OutgoingHttpHeader[],
    ): this {
      const given = (typeof reason === 'object' ? reason : headers) ?? {};
      const all: OutgoingHttpHeader[] = [];
      const added = headersOf(this.req);
      for (let index = 0; index < added.length; index += 2) {
        const name = added[index]!;
        if (!(name in given) && !this.hasHeader(name)) all.push(name, added[index + 1]!);
      }
      if (Array.isArray(given)) all.push(...given);
      else for (const name in given) all.push(name, given[name]!);
      return typeof reason === 'string' ? super.writeHead(status, reason, all) : super.writeHead(status, all);
    }
  };
}
