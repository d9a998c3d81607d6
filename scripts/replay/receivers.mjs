import { once } from 'node:events';
import { createServer } from 'node:http';

/** One receiver for each subscription, behind one port: it counts how often each notification came. */
export class Receivers {
  /** By number of the receiver, then by notification. @type {Map<string, number>[]} */
  arrivals;
  #server = createServer((request, response) => {
    const id = request.headers['webhook-id'];
    const arrived = this.arrivals[Number(request.url?.slice(1))];
    if (typeof id === 'string' && arrived) arrived.set(id, (arrived.get(id) ?? 0) + 1);
    request.resume().on('end', () => response.writeHead(204).end());
  });

  /** @param {number} count */
  constructor(count) {
    this.arrivals = Array.from({ length: count }, () => new Map());
  }

  /** @returns {Promise<string>} its origin */
  async listen() {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = /** @type {import('node:net').AddressInfo} */ (this.#server.address());
    return `http://127.0.0.1:${address.port}`;
  }

  stop() {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
