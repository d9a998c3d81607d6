import { Logger } from '@nestjs/common';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { once } from 'node:events';
import { createServer, type Server, type ServerOptions } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Settings } from '../../config/settings.js';
import { addressToListenOn, orSayWhy } from './cannot-listen.js';

/** Routes for operators alone: with ADMIN_PORT, only that port serves them. */
const isAdministrative = (route: string): boolean => /^\/(admin|console|docs|metrics)(\/|$)/.test(route);

/**
 * Routes that the port of operators serves beside those. The explanation of a problem is at the address where it was
 * met.
 */
const isOnBoth = (route: string): boolean => route === '/' || /^\/(health|ref)\//.test(route);

/**
 * The second server of a process, on ADMIN_PORT, in front of the same routes and rules. It listens before the first one
 * does, so that a process that listens serves both; with PROCESSES the supervisor deals out its connections as well.
 */
export class AdminServer {
  readonly server: Server;
  private readonly sockets = new WeakSet<Socket>();

  constructor(main: FastifyInstance, { ADMIN_PORT, ADMIN_HOST, HOST }: Settings, options: ServerOptions) {
    this.server = createServer(options, (request, response) => main.routing(request, response));
    this.server.keepAliveTimeout = main.server.keepAliveTimeout;
    this.server.on('connection', (socket: Socket) => this.sockets.add(socket));
    main.addHook('onReady', async () => {
      const listening = once(this.server.listen(ADMIN_PORT, addressToListenOn(ADMIN_HOST ?? HOST)), 'listening');
      await orSayWhy(listening, { host: ADMIN_HOST === undefined ? 'HOST' : 'ADMIN_HOST', port: 'ADMIN_PORT' });
      const { address, port, family } = this.server.address() as AddressInfo;
      const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
      new Logger('Http').log({ event: 'admin.listening', url });
    });
    let closed: Promise<void> | undefined;
    main.addHook('preClose', (done) => {
      closed = new Promise((resolve) => this.server.close(() => resolve()));
      done();
    });
    main.addHook('onClose', () => closed);
  }

  /** Whether the port that this request came by serves the route. */
  serves(route: string, { raw }: FastifyRequest): boolean {
    if (isOnBoth(route)) return true;
    return this.sockets.has(raw.socket) === isAdministrative(route);
  }
}
