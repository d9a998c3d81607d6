// Receivers in trouble, in a process of their own: as many origins as are asked for, each with a port of its own, all
// of them with the same behaviour. A delivery counts as arrived only when it was answered well.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { ArrivalBook } from './arrivals.mjs';
import { answerCalls } from './child.mjs';
import { accepted, failed, refused, serve } from './http-by-hand.mjs';

/**
 * well: 204 at once. hang: 204 after 15 seconds. late: 204 after 8 seconds. reset: the connection is reset in place of
 * an answer. fail: 500 at once. away: its ports are closed, so connections are refused.
 * @typedef {'well' | 'hang' | 'late' | 'reset' | 'fail' | 'away'} Behaviour
 */

/** Longer than a worker waits, and four fifths of that (NOTIFICATION_REQUESTS_TIMEOUT is 10 s). */
const laterMs = { hang: 15_000, late: 8000 };

const book = new ArrivalBook();
/** @type {Behaviour} */
let behaviour = 'well';
/** @type {import('node:net').Server[]} */
let servers = [];
/** @type {number[]} */
let ports = [];
let backlog = 511;
/** @type {Set<import('node:net').Socket>} */
const sockets = new Set();
/** Answers that are due later. @type {Set<() => void>} */
const hanging = new Set();

/** @param {import('node:net').Socket} socket */
function connected(socket) {
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
  serve(socket, (call) => {
    if (!call.isAuthorized) return refused;
    if (call.id === undefined) return accepted;
    const delivered = book.read(call);
    if (!delivered) return accepted;
    if (behaviour === 'fail') return failed;
    if (behaviour === 'well') {
      book.count(delivered);
      return accepted;
    }
    if (behaviour === 'hang' || behaviour === 'late') answerLater(socket, delivered, laterMs[behaviour]);
    else socket.resetAndDestroy();
    return '';
  });
}

/**
 * @param {import('node:net').Socket} socket
 * @param {import('./arrivals.mjs').Delivered} delivered
 * @param {number} ms
 */
function answerLater(socket, delivered, ms) {
  const answer = () => {
    forget();
    book.count(delivered);
    socket.write(accepted, 'latin1');
  };
  const forget = () => {
    clearTimeout(timer);
    hanging.delete(answer);
    socket.off('close', forget);
  };
  const timer = setTimeout(answer, ms);
  hanging.add(answer);
  socket.once('close', forget); // the caller has given up
}

/** Listens on the ports it has had. */
async function listen() {
  servers = ports.map(() => createServer({ noDelay: true }, connected));
  await Promise.all(
    servers.map(async (server, index) => {
      server.listen({ port: ports[index], host: '127.0.0.1', backlog });
      await once(server, 'listening');
    }),
  );
  ports = servers.map((server) => /** @type {import('node:net').AddressInfo} */ (server.address()).port);
}

async function close() {
  const closed = servers.map((server) => once(server, 'close'));
  for (const server of servers) server.close();
  for (const socket of sockets) socket.resetAndDestroy();
  servers = [];
  await Promise.all(closed);
}

const handlers = {
  /**
   * In place of those before.
   * @param {{ origins: number, backlog?: number }} how `backlog`: connections that wait to be accepted, for each
   * @returns {Promise<string[]>} their URLs
   */
  open: async (how) => {
    await close();
    behaviour = 'well';
    backlog = how.backlog ?? 511;
    ports = Array.from({ length: how.origins }, () => 0);
    await listen();
    return ports.map((port) => `http://127.0.0.1:${port}`);
  },

  /** Calls that are to be answered later are answered at once when they are well. @param {Behaviour} next */
  behave: async (next) => {
    const before = behaviour;
    behaviour = next;
    if (next === 'away') await close();
    else if (before === 'away') await listen();
    if (next === 'well') for (const answer of [...hanging]) answer();
  },

  ...book.handlers(),
};

/** @typedef {typeof handlers} OddReceiversHandlers */

answerCalls(handlers);
