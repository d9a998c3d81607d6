import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Random } from '../random.mjs';
import { strangeAnswer } from './strange-answers.mjs';

/**
 * @typedef {import('../../src/delivery/webhook-client.js').WebhookClient} WebhookClient
 * @typedef {import('../../src/delivery/webhook-client.js').WebhookResponse} WebhookResponse
 *
 * @typedef {object} Result
 * @property {number} calls
 * @property {import('./server-side.mjs').Finding[]} findings
 * @property {Map<string, number>} outcomes of calls, how many of each
 * @property {number} keptBytes that live on after all calls but the first tenth
 */

const atOnce = 32;
/** Memory that a run may leave behind, however long it is: connections that are kept, compiled code. */
const mostKeptBytes = 6e6;

/**
 * Has a client call receivers that answer at random, on connections that are kept and on others. Every call has to end
 * with a response that is well formed, within its time, whatever comes, and leave no memory behind.
 * @param {WebhookClient} client
 * @param {object} options
 * @param {number} options.calls
 * @param {number} options.seed
 * @param {() => void} options.collectGarbage
 * @param {number} [options.timeoutMs] of a call; longer than most of what receivers do here takes
 * @param {number} [options.patienceMs] a call that takes longer beyond its deadline hangs
 * @param {(done: number, findings: readonly import('./server-side.mjs').Finding[]) => void} [options.onProgress]
 * @returns {Promise<Result>}
 */
export async function fuzzReceivers(
  client,
  { calls, seed, collectGarbage, timeoutMs = 400, patienceMs = 60_000, onProgress = () => {} },
) {
  const receiver = await startStrangeReceiver(seed);
  /** @type {Result} */
  const result = { calls, findings: [], outcomes: new Map(), keptBytes: 0 };
  let next = 0;
  let done = 0;
  const callUpTo = async (/** @type {number} */ end) => {
    while (next < end) {
      const nr = next++;
      const what = await callOnce(nr);
      if (what) result.findings.push({ nr, what, request: '', answer: receiver.said(nr) });
      receiver.forget(nr);
      if (++done % 1000 === 0) onProgress(done, result.findings);
    }
  };
  const together = (/** @type {number} */ end) => Promise.all(Array.from({ length: atOnce }, () => callUpTo(end)));
  await together(Math.ceil(calls / 10));
  await settled();
  const before = liveBytes();
  await together(calls);
  // The rest of an answer is read within a second or two.
  const giveUpAt = Date.now() + patienceMs;
  do {
    await settled();
    result.keptBytes = liveBytes() - before;
  } while (result.keptBytes > mostKeptBytes && Date.now() < giveUpAt);
  if (result.keptBytes > mostKeptBytes)
    result.findings.push({ nr: calls, what: `${result.keptBytes} bytes stay in memory`, request: '', answer: '' });
  onProgress(calls, result.findings);
  await receiver.stop();
  return result;

  function liveBytes() {
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  }

  /**
   * @param {number} nr
   * @returns {Promise<string | undefined>} a fault
   */
  async function callOnce(nr) {
    const random = new Random(seed, `call ${nr}`);
    const request = {
      url: `http://127.0.0.1:${receiver.port}/`,
      headers: { 'content-type': 'application/json', 'webhook-id': String(nr) },
      body: Buffer.from(random.oneOf(['{}', `{"text":"${'x'.repeat(70_000)}"}`])),
      timeoutMs,
      mayRepeat: random.next() < 0.7,
    };
    const startedAt = performance.now();
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const tooLate = new Promise((resolve) => (timer = setTimeout(resolve, timeoutMs + patienceMs, 'late')));
    try {
      const response = await Promise.race([client.post(request), tooLate]);
      if (response === 'late') return `no response ${patienceMs / 1000} s after its deadline`;
      const answered = /** @type {WebhookResponse} */ (response);
      const outcome = answered.kind === 'answered' ? `${String(answered.status)[0]}xx` : answered.kind;
      result.outcomes.set(outcome, (result.outcomes.get(outcome) ?? 0) + 1);
      return malformed(answered, performance.now() - startedAt);
    } catch (error) {
      return `threw ${error instanceof Error ? error.message : String(error)}`;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Lets timers and sockets have their turn. */
const settled = () => pause(200);

/**
 * @param {WebhookResponse} response
 * @param {number} elapsedMs
 * @returns {string | undefined} its fault
 */
function malformed(response, elapsedMs) {
  const { durationMs, connectMs, firstByteMs, address } = response;
  if (!(durationMs >= 0 && durationMs <= elapsedMs + 1)) return `durationMs ${durationMs} of ${elapsedMs}`;
  for (const ms of [connectMs, firstByteMs])
    if (ms !== null && !(ms >= 0 && ms <= durationMs + 1)) return `${ms} ms of ${durationMs}`;
  if (address !== null && !/^127\.0\.0\.1:\d+$/.test(address)) return `address ${address}`;
  switch (response.kind) {
    case 'answered': {
      const { status, headers, body, askedDelayMs } = response;
      if (!(Number.isInteger(status) && status >= 200 && status <= 999)) return `status ${status}`;
      if (Buffer.byteLength(body) > 3 * 4096) return `a body of ${Buffer.byteLength(body)} bytes`;
      if (status < 300 && (body !== '' || Object.keys(headers).length > 0)) return 'a success with a body or headers';
      if (Object.values(headers).some((value) => typeof value !== 'string')) return 'a header that is no text';
      if (askedDelayMs !== null && !(askedDelayMs >= 0 && askedDelayMs <= 86_400_000))
        return `asks for ${askedDelayMs} ms`;
      return undefined;
    }
    case 'unanswered':
      if (response.reason === '') return 'no reason';
      return response.isOurs ? `our trouble: ${response.reason}` : undefined;
    case 'postponed':
      return `postponed, although there is no proxy: ${response.reason}`;
    case 'abandoned':
      return 'abandoned, although nobody stops it';
  }
}

/**
 * A receiver that answers each call by what the number in its `webhook-id` decides.
 * @param {number} seed
 */
async function startStrangeReceiver(seed) {
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();
  /** @type {Map<number, string>} */
  const said = new Map();
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.on('end', () => socket.destroy());
    let text = '';
    socket.on('data', (chunk) => {
      // Of a request only its number is needed.
      text = (text + chunk.toString('latin1')).slice(-100_000);
      const line = /webhook-id: (\d+)\r\n/.exec(text);
      if (!line) return;
      text = '';
      const nr = Number(line[1]);
      const answer = strangeAnswer(new Random(seed, `answer ${nr}`));
      said.set(
        nr,
        answer.steps.map((step) => (step.kind === 'say' ? step.bytes.toString('latin1', 0, 500) : step.kind)).join('|'),
      );
      void perform(socket, answer.steps);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: /** @type {import('node:net').AddressInfo} */ (server.address()).port,
    said: (/** @type {number} */ nr) => said.get(nr) ?? '',
    forget: (/** @type {number} */ nr) => void said.delete(nr),
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/**
 * @param {import('node:net').Socket} socket
 * @param {readonly import('./strange-answers.mjs').Step[]} steps
 */
async function perform(socket, steps) {
  for (const step of steps) {
    if (socket.destroyed) return;
    switch (step.kind) {
      case 'say':
        socket.write(step.bytes);
        break;
      case 'wait':
        await new Promise((resolve) => setTimeout(resolve, step.ms));
        break;
      case 'end':
        socket.end();
        break;
      case 'reset':
        socket.resetAndDestroy();
        break;
    }
  }
}
