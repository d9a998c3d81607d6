import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';

/** Tokens that last 100 seconds, each with the number of its request. */
const giveToken = (response: ServerResponse, nr: number): void =>
  void response.end(JSON.stringify({ access_token: `token-${nr}`, token_type: 'bearer', expires_in: 100 }));

/** A token endpoint whose answers a test decides. */
export class TokenEndpoint {
  readonly requests: { authorization: string | undefined; userAgent: string | undefined; form: URLSearchParams }[] = [];
  answer: (response: ServerResponse, nr: number) => void = giveToken;
  private readonly server: Server;

  constructor(tls?: ServerOptions) {
    const handle = (request: IncomingMessage, response: ServerResponse) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const form = new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
        const { authorization, 'user-agent': userAgent } = request.headers;
        this.requests.push({ authorization, userAgent, form });
        this.answer(response, this.requests.length);
      });
    };
    this.server = tls ? createHttpsServer(tls, handle) : createHttpServer(handle);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async start(): Promise<void> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
  }

  /** As it was at first. */
  reset(): void {
    this.requests.length = 0;
    this.answer = giveToken;
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}
