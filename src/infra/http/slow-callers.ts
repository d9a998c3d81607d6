import type { IncomingMessage, Server, ServerOptions } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Milliseconds. A caller that is slower only occupies a connection, and the memory of what it has not sent or not read.
 */
export interface TimeLimits {
  /** From the connection, or the first byte of a further request, to the end of the headers. */
  headers: number;
  /** To the end of the body. */
  request: number;
  /** An answer must have been taken by the caller, up to what the system keeps for it. */
  answer: number;
  /**
   * So long a caller has for the answer that says that it was too slow, or sent no HTTP, before its connection is cut.
   */
  lastAnswer: number;
  /** How often all connections are looked at, which is how much later than its limit one ends. */
  lookEvery: number;
}

export const timeLimits: TimeLimits = {
  headers: 10_000,
  request: 30_000,
  answer: 60_000,
  lastAnswer: 1000,
  lookEvery: 1000,
};

/** Of the URL and all headers; Node answers more with 431 itself, by `clientError`. */
const mostHeaderBytes = 16 * 1024;

/**
 * For each server of this process. Node keeps to the first two limits by itself, with a look at all connections each
 * `connectionsCheckingInterval`, by default every 30 s, and passes what it finds to `clientError`.
 */
export const serverOptions = (limits: TimeLimits): ServerOptions => ({
  headersTimeout: limits.headers,
  requestTimeout: limits.request,
  connectionsCheckingInterval: limits.lookEvery,
  maxHeaderSize: mostHeaderBytes,
  // Node would refuse a request without a Host itself, with an empty body; `refusalOf` finds it instead.
  requireHostHeader: false,
});

/**
 * Ends connections whose callers do not take their answers. Nothing is done for a request: a look at the connections
 * finds those that have had bytes to write at every look for longer than the limit.
 */
export function cutSlowReaders(server: Server, { answer, lookEvery }: TimeLimits): void {
  /** Since when each connection has bytes to write. */
  const writingSince = new Map<Socket, number | undefined>();
  server.on('connection', (socket: Socket) => {
    writingSince.set(socket, undefined);
    socket.once('close', () => writingSince.delete(socket));
  });
  const looking = setInterval(() => {
    const now = performance.now();
    for (const [socket, since] of writingSince) {
      if (socket.writableLength === 0) writingSince.set(socket, undefined);
      else if (since === undefined) writingSince.set(socket, now);
      else if (now - since >= answer) socket.destroy();
    }
  }, lookEvery).unref();
  server.once('close', () => clearInterval(looking));
}

type Refuse = (error: Error & { code?: string }, socket: Socket) => void;

/**
 * Node's look at the connections may itself be late: where the process was busy for longer than a limit (the embedded
 * database computes in it), requests that came in time lie unread, and the look comes before the reading. They are read
 * first; only who is not there then was slow.
 */
export class LateLooks {
  /** Connections whose time is over, with the request that was read from them after all. */
  private readonly doubted = new Map<Socket, IncomingMessage | undefined>();

  constructor(
    private readonly limits: Pick<TimeLimits, 'request'>,
    private readonly refuse: Refuse,
  ) {}

  watch(server: Server): void {
    server.on('request', (request) => {
      if (this.doubted.has(request.socket)) this.doubted.set(request.socket, request);
    });
  }

  /** For `clientError`. */
  readonly judge: Refuse = (error, socket) => {
    if (error.code !== 'ERR_HTTP_REQUEST_TIMEOUT') return this.refuse(error, socket);
    this.doubted.set(socket, undefined);
    // After the event loop has read what lies there.
    setImmediate(() => {
      const request = this.doubted.get(socket);
      this.doubted.delete(socket);
      if (!request) return this.refuse(error, socket);
      if (request.complete) return;
      // Node has judged this connection, and does not look at the rest of the request any more.
      const limit = setTimeout(() => {
        if (!request.complete) this.refuse(error, socket);
      }, this.limits.request).unref();
      socket.once('close', () => clearTimeout(limit));
    });
  };
}
