import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

declare module 'fastify' {
  interface FastifyInstance {
    answers: LatestAnswers;
  }
}

type Refuse = (error: Error & { code?: string }, socket: Socket) => void;

/**
 * The latest answer of each connection. An error behind a request that came whole (a body one byte longer than its
 * Content-Length, a further request that is no HTTP, or that stalls) waits until that one is answered, or a publisher
 * would repeat a notification that is stored.
 */
export class LatestAnswers {
  private readonly latest = new WeakMap<Socket, ServerResponse>();
  /** Node tells of an error again with every byte that follows it. */
  private readonly waiting = new WeakSet<Socket>();
  private areCallersLetGo = false;

  /** @param refuse ends the connection */
  constructor(private readonly refuse: Refuse) {}

  watch(server: Server): void {
    const note = ({ socket }: IncomingMessage, answer: ServerResponse) => void this.latest.set(socket, answer);
    // Before the router: what it answers at once is to end its connection as well.
    server.prependListener('request', note);
    server.prependListener('checkExpectation', note);
  }

  /** From here on each connection ends with its next answer, so that its caller's next request comes by another one. */
  letCallersGo(): void {
    this.areCallersLetGo = true;
  }

  /**
   * Whether the connection is to end with the answer to this request. Those behind it, of a pipeline, are answered; and
   * one whose body is still coming is not cut off by an early answer.
   */
  endsConnection(request: IncomingMessage): boolean {
    return this.areCallersLetGo && request.complete && this.latest.get(request.socket)?.req === request;
  }

  /** When all that came whole before the error is answered. Those answers have limits of their own. */
  readonly refuseInTurn: Refuse = (error, socket) => {
    if (this.waiting.has(socket)) return;
    const answer = this.latest.get(socket);
    // It was answered while its body was coming.
    if (answer?.destroyed && !answer.req.complete) return socket.destroySoon();
    const event = answer && socket.writable ? awaited(answer) : undefined;
    if (!answer || !event || (!isTimeout(error) && isEndless(answer))) return this.refuse(error, socket);
    // Nothing more is read from the connection, as its caller learns here; but a request that stalls may still come.
    if (event === 'close' && !isTimeout(error)) answer.shouldKeepAlive = false;
    this.waiting.add(socket);
    answer.once(event, () => {
      this.waiting.delete(socket);
      // It came whole after all. Node judges the next one anew.
      if (isTimeout(error) && this.latest.get(socket) !== answer && this.latest.get(socket)!.req.complete) return;
      // Otherwise Node is ending the connection, or it has gone.
      if (socket.writable) this.refuseInTurn(error, socket);
    });
  };
}

const isTimeout = ({ code }: { code?: string }): boolean => code === 'ERR_HTTP_REQUEST_TIMEOUT';

/**
 * A stream of events, perhaps, to which more is written: bytes behind it would be read, and refused again and again,
 * until it ends. Not one whose turn it is not yet: those before it are to be answered.
 */
const isEndless = (answer: ServerResponse): boolean =>
  answer.socket !== null && answer.headersSent && !answer.writableEnded;

/** The event that says that all is answered; undefined: it is. */
function awaited(answer: ServerResponse): 'close' | 'socket' | undefined {
  if (answer.destroyed) return undefined; // taken, or the connection has gone
  if (answer.req.complete || answer.headersSent) return 'close';
  // The error is in this request itself: those before it are answered when it is its turn.
  return answer.socket ? undefined : 'socket';
}
