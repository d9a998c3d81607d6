import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { certificate, key } from './tls-identity.js';

/** The treatment of a CONNECT: `socket` is that of the client. */
export type ProxyBehaviour = (socket: Socket, authority: string) => void;

/** The tunnel that was asked for; all addresses lead to this machine. */
export const tunnel: ProxyBehaviour = (socket, authority) => {
  const target = connect({ host: '127.0.0.1', port: Number(authority.split(':').at(-1)) }, () => {
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    socket.pipe(target).pipe(socket);
  });
  target.on('error', () => {}); // `close` follows
  target.on('close', () => socket.destroy());
  socket.on('close', () => target.destroy());
};
export const refuse =
  (status: number): ProxyBehaviour =>
  (socket) =>
    void socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 2\r\n\r\nno`);
export const drop: ProxyBehaviour = (socket) => void socket.destroy();
export const hang: ProxyBehaviour = () => {};

/** A real HTTP proxy for CONNECT, which does as it is told. */
export class ConnectProxy {
  readonly sockets: Socket[] = [];
  /** With the target, and the headers, of each CONNECT. */
  readonly asked: { authority: string; headers: http.IncomingHttpHeaders }[] = [];
  /** By which its clients called it in TLS, where they did by any. */
  readonly namesInTls: string[] = [];
  behaviour: ProxyBehaviour = tunnel;

  private constructor(
    private readonly server: http.Server,
    private readonly scheme: 'http' | 'https',
  ) {
    server.on('connection', (socket: Socket) => this.sockets.push(socket));
    server.on('secureConnection', ({ servername }: TLSSocket) =>
      this.namesInTls.push(...(servername ? [servername] : [])),
    );
    server.on('connect', ({ url = '', headers }: http.IncomingMessage, socket: Socket) => {
      socket.on('error', () => {});
      this.asked.push({ authority: url, headers });
      this.behaviour(socket, url);
    });
  }

  /** With TLS it asks for a client certificate, and needs none. */
  static async start(scheme: 'http' | 'https' = 'http'): Promise<ConnectProxy> {
    const tls = { cert: certificate, key, requestCert: true, rejectUnauthorized: false };
    const server = scheme === 'https' ? https.createServer(tls) : http.createServer();
    const proxy = new ConnectProxy(server, scheme);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get host(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `${this.scheme}://${this.host}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }
}
