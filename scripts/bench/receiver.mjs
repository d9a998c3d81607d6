// The receiver of the benchmark, in a process of its own and as cheap as it can be: HTTP/1.1 by hand on a socket. It answers
// 401 without `Authorization` and 204 with, and keeps of every delivery how often it came, under which webhook-id, and when.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { answerCalls } from './child.mjs';
import { sharedNowMs } from './clock.mjs';
import { readTail } from './notification.mjs';

/**
 * The deliveries of one measurement that arrived. The delivery of notification `n` for subscription `s` has index `n *
 * subscriptions + s`.
 * @typedef {object} Arrivals
 * @property {number} subscriptions
 * @property {number} different deliveries that came at least once
 * @property {number} lastMs when the last of them came, on the shared clock
 * @property {Uint8Array} times how often each came; 255 means that often or more
 * @property {string[]} ids webhook-id of each
 * @property {Float64Array} latencyMs from the time it carries to its first arrival
 * @property {number} bodyBytes of the last one
 */

/** @type {Map<number, Arrivals>} */
const runs = new Map();
/** Deliveries that fit no measurement. */
let strange = 0;

const accepted = 'HTTP/1.1 204 No Content\r\n\r\n';
const refused = 'HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n';
const endOfHead = Buffer.from('\r\n\r\n');

const server = createServer({ noDelay: true }, (socket) => {
  /** @type {Buffer | undefined} */
  let rest;
  socket.on('error', () => socket.destroy()); // the other side went away
  socket.on('data', (chunk) => {
    const input = rest ? Buffer.concat([rest, chunk]) : chunk;
    let answers = '';
    let at = 0;
    while (at < input.length) {
      const headEnd = input.indexOf(endOfHead, at);
      if (headEnd < 0) break;
      // Header names have no case (RFC 9110 §5.1), and no value that is read here has either.
      const head = input.toString('latin1', at, headEnd + 2).toLowerCase();
      const bodyBytes = Number(valueOf(head, 'content-length') ?? 0);
      const end = headEnd + endOfHead.length + bodyBytes;
      if (end > input.length) break;
      const isAuthorized = valueOf(head, 'authorization') !== undefined;
      const id = valueOf(head, 'webhook-id');
      // The calls that prove a callback before it is registered carry no id.
      if (isAuthorized && id !== undefined) note(head, id, input, end, bodyBytes);
      answers += isAuthorized ? accepted : refused;
      at = end;
    }
    rest = at === input.length ? undefined : input.subarray(at);
    if (answers !== '') socket.write(answers, 'latin1');
  });
});

/**
 * @param {string} head
 * @param {string} name
 * @returns {string | undefined}
 */
function valueOf(head, name) {
  const at = head.indexOf(`\r\n${name}:`);
  if (at < 0) return undefined;
  const from = at + name.length + 3;
  return head.slice(from, head.indexOf('\r\n', from)).trim();
}

/**
 * @param {string} head
 * @param {string} id
 * @param {Buffer} input
 * @param {number} end
 * @param {number} bodyBytes
 */
function note(head, id, input, end, bodyBytes) {
  const now = sharedNowMs();
  const tail = readTail(input, end);
  const run = tail && runs.get(tail.run);
  // The path is the number of the subscription.
  const subscription = Number(head.slice('post /'.length, head.indexOf(' ', 'post /'.length)));
  const index = tail && run ? tail.number * run.subscriptions + subscription : -1;
  if (!tail || !run || !(index >= 0 && index < run.times.length)) {
    strange += 1;
    return;
  }
  const times = run.times[index] ?? 0;
  if (times < 255) run.times[index] = times + 1;
  if (times > 0) return;
  run.different += 1;
  run.lastMs = now;
  run.latencyMs[index] = now - tail.sentMs;
  // A copy: a slice of the head would keep all of it in memory.
  run.ids[index] = Buffer.from(id, 'latin1').toString('latin1');
  run.bodyBytes = bodyBytes;
}

const handlers = {
  /** @returns {Promise<string>} the URL it listens on */
  listen: async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    return `http://127.0.0.1:${port}`;
  },

  /** @param {{ run: number, notifications: number, subscriptions: number }} parameter at most that many notifications */
  begin: ({ run, notifications, subscriptions }) => {
    const deliveries = notifications * subscriptions;
    runs.set(run, {
      subscriptions,
      different: 0,
      lastMs: 0,
      times: new Uint8Array(deliveries),
      ids: Array.from({ length: deliveries }, () => ''),
      latencyMs: new Float64Array(deliveries),
      bodyBytes: 0,
    });
  },

  /** @param {number} run */
  progress: (run) => {
    const { different = 0, lastMs = 0 } = runs.get(run) ?? {};
    return { different, lastMs };
  },

  /** @param {number} run */
  arrivals: (run) => runs.get(run),

  /** @param {number} run of which every further delivery fits no measurement */
  forget: (run) => runs.delete(run),

  strange: () => strange,
};

/** @typedef {typeof handlers} ReceiverHandlers */

answerCalls(handlers);
