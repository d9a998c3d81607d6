// HTTP/1.1 by hand: a client of any library refuses to send most of what the fuzzer sends.
import { connect } from 'node:net';

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {Map<string, string>} headers names in lower case
 * @property {Buffer} body
 */

const endOfLine = '\r\n';
const endOfHead = Buffer.from('\r\n\r\n');

export class NoAnswer extends Error {}

/** A connection that stays open from request to request, and is made anew when the server has closed it. */
export class Connection {
  /** @type {import('node:net').Socket | undefined} */
  #socket;
  /** @type {Buffer} */
  #rest = Buffer.alloc(0);
  #hasEnded = false;
  #wake = () => {};

  /**
   * @param {number} port
   * @param {number} patienceMs a server that takes longer to answer hangs
   */
  constructor(port, patienceMs) {
    this.port = port;
    this.patienceMs = patienceMs;
  }

  /**
   * @param {Buffer} bytes one request
   * @param {string} method
   * @returns {Promise<Answer>}
   * @throws {NoAnswer} when the server hangs, or closes the connection instead of answering
   */
  async ask(bytes, method) {
    const isKept = this.#socket !== undefined && !this.#hasEnded;
    if (!isKept) this.#connect();
    this.#socket?.write(bytes);
    const answer = await this.#read(method);
    if (answer && answer.headers.get('connection') !== 'close') return answer;
    const had = this.#rest.length;
    this.close();
    if (answer) return answer;
    // A server may close a connection that waits for the next request; then it has seen nothing of this one.
    if (isKept && had === 0) return this.ask(bytes, method);
    throw new NoAnswer(had === 0 ? 'closed without an answer' : 'closed in the middle of an answer');
  }

  /**
   * Sends the bytes, and nothing after them.
   * @param {Buffer} bytes
   * @returns {Promise<Answer[]>} all that the server answers until it closes the connection
   * @throws {NoAnswer} when it hangs
   */
  async askAll(bytes) {
    this.close();
    this.#connect();
    this.#socket?.end(bytes);
    const answers = [];
    for (let next = await this.#read('POST'); next; next = await this.#read('POST')) answers.push(next);
    const left = this.#rest.length;
    this.close();
    if (left > 0) throw new NoAnswer(`closed ${left} bytes into an answer`);
    return answers;
  }

  close() {
    this.#socket?.destroy();
    this.#socket = undefined;
    this.#rest = Buffer.alloc(0);
  }

  #connect() {
    const socket = connect({ port: this.port, host: '127.0.0.1', noDelay: true });
    this.#socket = socket;
    this.#rest = Buffer.alloc(0);
    this.#hasEnded = false;
    socket.on('data', (chunk) => {
      if (this.#socket !== socket) return;
      this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
      this.#wake();
    });
    const end = () => {
      if (this.#socket !== socket) return;
      this.#hasEnded = true;
      this.#wake();
    };
    socket.on('close', end);
    socket.on('end', end);
    socket.on('error', end);
  }

  /**
   * @param {string} method
   * @returns {Promise<Answer | undefined>} undefined: the connection was closed before there was a whole one
   */
  async #read(method) {
    for (;;) {
      const parsed = parse(this.#rest, method, this.#hasEnded);
      if (parsed) {
        this.#rest = this.#rest.subarray(parsed.length);
        if (parsed.answer.status >= 200) return parsed.answer;
      } else if (this.#hasEnded) return undefined;
      else await this.#more();
    }
  }

  async #more() {
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const came = new Promise((resolve) => {
      this.#wake = () => resolve(true);
      timer = setTimeout(resolve, this.patienceMs, false);
    });
    const isInTime = await came;
    clearTimeout(timer);
    if (isInTime) return;
    this.close();
    throw new NoAnswer(`no answer within ${this.patienceMs / 1000} s`);
  }
}

/**
 * @param {Buffer} input
 * @param {string} method of the request: an answer to HEAD has no body
 * @param {boolean} hasEnded no more bytes will come
 * @returns {{ answer: Answer, length: number } | undefined} undefined: it is not complete
 */
function parse(input, method, hasEnded) {
  const headEnd = input.indexOf(endOfHead);
  if (headEnd < 0) return undefined;
  const [statusLine = '', ...lines] = input.toString('latin1', 0, headEnd).split(endOfLine);
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(statusLine)?.[1]);
  if (!status) throw new NoAnswer(`no HTTP: ${statusLine.slice(0, 100)}`);
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const start = headEnd + endOfHead.length;
  const done = (/** @type {Buffer} */ body, /** @type {number} */ length) => ({
    answer: { status, headers, body },
    length,
  });
  if (status < 200 || status === 204 || status === 304 || method === 'HEAD') return done(Buffer.alloc(0), start);
  if (headers.get('transfer-encoding') === 'chunked') return unchunked(input, start, done);
  const length = headers.get('content-length');
  if (length === undefined) return hasEnded ? done(input.subarray(start), input.length) : undefined;
  const end = start + Number(length);
  return input.length < end ? undefined : done(input.subarray(start, end), end);
}

/**
 * @template T
 * @param {Buffer} input
 * @param {number} at
 * @param {(body: Buffer, length: number) => T} done
 * @returns {T | undefined}
 */
function unchunked(input, at, done) {
  const chunks = [];
  for (;;) {
    const lineEnd = input.indexOf(endOfLine, at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(input.toString('latin1', at, lineEnd), 16);
    const start = lineEnd + endOfLine.length;
    if (input.length < start + size + endOfLine.length) return undefined;
    at = start + size + endOfLine.length;
    if (size === 0) return done(Buffer.concat(chunks), at);
    chunks.push(input.subarray(start, start + size));
  }
}
