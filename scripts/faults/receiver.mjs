// The checking receiver, in a process of its own: it answers like a subscriber, counts per notification and
// subscription how often it arrived and under which webhook-id, and goes down when a scenario says so. It never forgets
// its counts.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { answerCalls } from '../bench/child.mjs';
import { sharedNowMs } from '../bench/clock.mjs';
import { readTail } from '../bench/notification.mjs';

/**
 * The notifications of one scenario that arrived for one subscription; the arrays belong together by index.
 * @typedef {object} Arrivals
 * @property {Int32Array} numbers of the notifications that arrived
 * @property {Uint16Array} times how often each did
 * @property {Float64Array} firstMs when it did first, on the shared clock
 * @property {string[]} ids its webhook-id
 * @property {number[]} renamed numbers that came under more than one webhook-id
 * @property {number[]} overtaken numbers that came only after a later one about the same object
 */

/** @typedef {{ times: number, firstMs: number, id: string, otherId: boolean, overtaken: boolean }} Arrival */

/** An answer sent less than this before the receiver dies may not arrive. */
const lostAnswersMs = 50;

/** Of the present scenario, by subscription and number of the notification. @type {Map<number, Arrival>[]} */
let subscriptions = [];
/** The latest number about each object, by subscription. @type {Map<number, number>[]} */
let latest = [];
/** Number `n` is about object `n % objects`. */
let objects = 1;
let run = -1;
let strange = 0;
let lastMs = 0;
let answerAfterMs = 0;
let port = 0;
/** The first call of one notification in so many is refused, for the first subscription; 0: none is. */
let refuseOneIn = 0;
/** Numbers of those. @type {Set<number>} */
let refused = new Set();
/** Calls read and not answered yet, by subscription. @type {number[]} */
let open = [];
/** When the latest answers were given, by subscription. @type {number[][]} */
let answeredMs = [];

const server = createServer((request, response) => {
  if (request.headers.authorization === undefined) return void response.writeHead(401).end();
  /** @type {Buffer[]} */
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const id = request.headers['webhook-id'];
    // The calls that prove a callback before it is registered carry no id.
    if (typeof id !== 'string') return void response.writeHead(204).end();
    const subscription = Number(request.url?.slice(1));
    const body = Buffer.concat(chunks);
    // Not an arrival: it is sent again for a good reason.
    if (subscription === 0 && isToBeRefused(body)) return void response.writeHead(503).end();
    note(subscription, id, body);
    open[subscription] = (open[subscription] ?? 0) + 1;
    const answer = () => {
      if (!response.destroyed) response.writeHead(204).end();
    };
    if (answerAfterMs > 0) setTimeout(answer, answerAfterMs);
    else answer();
    response.once('close', () => {
      open[subscription] = (open[subscription] ?? 0) - 1;
      const latest = (answeredMs[subscription] ??= []);
      latest.push(sharedNowMs());
      if (latest.length > 10_000) latest.splice(0, 5000);
    });
  });
});
// Longer than a client keeps idle connections: a server that closes them first loses calls that are on their way.
server.keepAliveTimeout = 120_000;

/**
 * @param {number} subscription
 * @param {string} id
 * @param {Buffer} body
 */
function note(subscription, id, body) {
  const now = sharedNowMs();
  const tail = readTail(body, body.length);
  const arrivals = subscriptions[subscription];
  if (!tail || tail.run !== run || !arrivals) {
    strange += 1;
    return;
  }
  lastMs = now;
  const arrival = arrivals.get(tail.number);
  if (!arrival) {
    const overtaken = isOvertaken(subscription, tail.number);
    arrivals.set(tail.number, { times: 1, firstMs: now, id, otherId: false, overtaken });
  } else {
    arrival.times += 1;
    if (arrival.id !== id) arrival.otherId = true;
  }
}

/** @param {Buffer} body */
function isToBeRefused(body) {
  const tail = readTail(body, body.length);
  if (refuseOneIn === 0 || !tail || tail.run !== run || tail.number % refuseOneIn > 0 || refused.has(tail.number))
    return false;
  refused.add(tail.number);
  return true;
}

/**
 * A receiver knows a repetition by its webhook-id, so only the first arrival of each counts.
 * @param {number} subscription
 * @param {number} number
 */
function isOvertaken(subscription, number) {
  const ofSubscription = (latest[subscription] ??= new Map());
  const before = ofSubscription.get(number % objects) ?? -1;
  ofSubscription.set(number % objects, Math.max(before, number));
  return number < before;
}

async function listen() {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = /** @type {import('node:net').AddressInfo} */ (server.address()));
  return `http://127.0.0.1:${port}`;
}

const handlers = {
  /** @returns {Promise<string>} the URL it listens on */
  listen,

  /** @param {{ run: number, subscriptions: number, answerAfterMs: number, objects: number }} scenario */
  begin: (scenario) => {
    run = scenario.run;
    answerAfterMs = scenario.answerAfterMs;
    objects = scenario.objects;
    latest = [];
    subscriptions = Array.from({ length: scenario.subscriptions }, () => new Map());
    open = subscriptions.map(() => 0);
    answeredMs = subscriptions.map(() => []);
    strange = 0;
    lastMs = 0;
    refuseOneIn = 0;
    refused = new Set();
  },

  /** From now on. @param {number} oneIn */
  refuse: (oneIn) => void (refuseOneIn = oneIn),

  /** Closes every connection without an answer, and the port. @returns the number of calls cut, by subscription */
  down: async () => {
    const since = sharedNowMs() - lostAnswersMs;
    const cut = open.map((count, index) => count + (answeredMs[index] ?? []).filter((at) => at >= since).length);
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
    return cut;
  },

  up: async () => void (await listen()),

  /** @param {{ subscription: number, ids: string[] }} which @returns those of these webhook-ids that have arrived */
  arrived: ({ subscription, ids }) => {
    const arrived = new Set([...(subscriptions[subscription]?.values() ?? [])].map(({ id }) => id));
    return ids.filter((id) => arrived.has(id));
  },

  progress: () => ({ different: subscriptions.map((arrivals) => arrivals.size), lastMs }),

  /** @returns {{ arrivals: Arrivals[], strange: number }} */
  result: () => ({ arrivals: subscriptions.map(toArrays), strange }),
};

/** @typedef {typeof handlers} CheckingReceiver */

/**
 * @param {Map<number, Arrival>} arrivals
 * @returns {Arrivals}
 */
function toArrays(arrivals) {
  const all = [...arrivals.values()];
  return {
    numbers: Int32Array.from(arrivals.keys()),
    times: Uint16Array.from(all, ({ times }) => times),
    firstMs: Float64Array.from(all, ({ firstMs }) => firstMs),
    ids: all.map(({ id }) => id),
    renamed: [...arrivals].filter(([, { otherId }]) => otherId).map(([number]) => number),
    overtaken: [...arrivals].filter(([, { overtaken }]) => overtaken).map(([number]) => number),
  };
}

answerCalls(handlers);
