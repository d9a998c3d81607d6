import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { PeerCertificate, TlsOptions, TLSSocket } from 'node:tls';
import { makeCertificate } from './certificates.js';

export const authority = makeCertificate('authority of the test');
/** Of two subscriptions. */
export const clients = ['one', 'other'].map((name) => makeCertificate(name, { by: authority }));

const server = makeCertificate('receiver', { by: authority, hosts: ['127.0.0.1', 'localhost'] });

/** Of a server that takes nobody without a certificate of its authority. */
export const strictTls = {
  cert: server.certificate,
  key: server.key,
  ca: authority.certificate,
  requestCert: true,
  rejectUnauthorized: true,
};

/** A webhook that asks for nothing but a client certificate. */
export class StrictReceiver {
  /** The calls, by the name in the certificate of each; where none was asked for, it is empty. */
  readonly seen: { client: string; socket: TLSSocket }[] = [];
  private readonly server: Server;

  /** @param changes of its TLS */
  constructor(changes: TlsOptions = {}) {
    this.server = createServer({ ...strictTls, ...changes }, (request, response) => {
      const socket = request.socket as TLSSocket;
      const { subject } = socket.getPeerCertificate() as Partial<PeerCertificate>;
      this.seen.push({ client: String(subject?.CN ?? ''), socket });
      request.resume().on('end', () => response.writeHead(204).end());
    });
  }

  /** @returns its URL */
  async start(): Promise<string> {
    this.server.on('tlsClientError', () => {});
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return `https://127.0.0.1:${(this.server.address() as AddressInfo).port}/webhook`;
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}
