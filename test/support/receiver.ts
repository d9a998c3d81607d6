import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  /** The exact bytes as text. */
  text: string;
  /** Milliseconds since 1970. */
  at: number;
}

/** A receiver's reaction to one request, once it has read it all. */
export type Behaviour = (request: ReceivedRequest, response: ServerResponse) => void;

export function answer(status: number, headers: Record<string, string> = {}, body = ''): Behaviour {
  return (_request, response) => response.writeHead(status, headers).end(body);
}

/** Reads the request and says nothing until the caller gives up. */
export const hang: Behaviour = () => {};

/** Closes the connection hard (RST) instead of answering. */
export const reset: Behaviour = (_request, response) => response.socket?.resetAndDestroy();

export const redirect = (to: string, status = 302): Behaviour => answer(status, { location: to });

/** Answers with something that is not HTTP. */
export const nonsense: Behaviour = (_request, response) => response.socket?.end('220 mail.example.org ESMTP\r\n');

/** Sends the head at once, then one byte of a body that will never be complete every `everyMs`. */
export function drip(everyMs: number, status = 200): Behaviour {
  return (_request, response) => {
    response.writeHead(status, { 'content-length': '1000000' });
    response.write('.');
    const timer = setInterval(() => response.write('.'), everyMs);
    response.on('close', () => clearInterval(timer));
  };
}

/** Answers with this many bytes, as fast as the caller takes them. */
export function huge(bytes: number, status = 200): Behaviour {
  const block = Buffer.alloc(65_536, '.');
  return (_request, response) => {
    response.writeHead(status);
    let left = bytes;
    const push = () => {
      while (left > 0) {
        left -= block.length;
        if (!response.write(block)) return void response.once('drain', push);
      }
      response.end();
    };
    push();
  };
}

/** 401 without `Authorization`, 204 with: required of a subscription's callback. */
export const protectedReceiver: Behaviour = (request, response) =>
  response.writeHead(request.headers.authorization ? 204 : 401).end();

/** One notification at one path of a receiver, in a form that sorts and compares. */
export const arrival = (notificationId: string, path: string): string => `${notificationId} ${path}`;

/** A webhook whose behaviour a test decides, request by request. It records everything it gets. */
export class Receiver {
  readonly requests: ReceivedRequest[] = [];
  /** Which notification came in at which path, as often as it did: each an `arrival`. */
  readonly arrivals: string[] = [];
  /** Bytes of each answer that is over, as far as they left this process: the caller and the system took them. */
  readonly answeredBytes: number[] = [];
  private readonly coming: Behaviour[] = [];
  private otherwise: Behaviour = protectedReceiver;
  private server: Server | undefined;
  private port = 0;

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    await receiver.start();
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/webhook`;
  }

  /** Notifications among the requests; the two calls that prove a callback are not. */
  get notifications(): ReceivedRequest[] {
    return this.requests.filter((request) => request.headers['webhook-id'] !== undefined);
  }

  /** For the next requests, one each; then again what `always` said. */
  next(...behaviours: Behaviour[]): void {
    this.coming.push(...behaviours);
  }

  always(behaviour: Behaviour): void {
    this.otherwise = behaviour;
  }

  /** Again on the same port, after `stop`. */
  async start(): Promise<void> {
    const server = createServer((request, response) => this.receive(request, response));
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    this.port = (server.address() as AddressInfo).port;
    this.server = server;
  }

  /** Connections are refused from then on; open ones are cut. */
  async stop(): Promise<void> {
    const server = this.server;
    if (!server) return;
    this.server = undefined;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  }

  private receive(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => {}); // the caller went away
    response.on('error', () => {});
    const socket = request.socket;
    const before = socket.bytesWritten;
    response.on('close', () => this.answeredBytes.push(socket.bytesWritten - socket.writableLength - before));
    request.on('end', () => {
      const received: ReceivedRequest = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        text: Buffer.concat(chunks).toString('utf8'),
        at: Date.now(),
      };
      this.requests.push(received);
      const notificationId = request.headers['webhook-id'];
      if (typeof notificationId === 'string') this.arrivals.push(arrival(notificationId, received.path));
      (this.coming.shift() ?? this.otherwise)(received, response);
    });
  }
}
