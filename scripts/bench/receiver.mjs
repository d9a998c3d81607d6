// The receiver of the benchmark, in a process of its own and as cheap as it can be. It answers 401 without
// `Authorization` and 204 with, and keeps of every delivery how often it came, under which webhook-id, and when.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { ArrivalBook } from './arrivals.mjs';
import { answerCalls } from './child.mjs';
import { accepted, refused, serve } from './http-by-hand.mjs';

const book = new ArrivalBook();

const server = createServer({ noDelay: true }, (socket) => {
  serve(socket, (call) => {
    if (!call.isAuthorized) return refused;
    const delivered = call.id === undefined ? undefined : book.read(call);
    if (delivered) book.count(delivered);
    return accepted;
  });
});

const handlers = {
  /** @returns {Promise<string>} the URL it listens on */
  listen: async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    return `http://127.0.0.1:${port}`;
  },

  ...book.handlers(),
};

/** @typedef {typeof handlers} ReceiverHandlers */

answerCalls(handlers);
