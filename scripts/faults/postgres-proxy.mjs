import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/**
 * Statements that commit on the way of a delivery: those with a transaction of their own, by the names under which
 * Heraut prepares them, those about one day with its number (src/ledger/per-day.ts), and the end of every other
 * transaction.
 */
const committing =
  /\0(accept|accept-some-held|accept-on-terms|settle|claim-sending|hold|release|line-up|pass-turns|hand-out-due|end-sending|free-[a-z-]+|put-back|keep-in-hand|leave-to-holder)(?: \d+)?\0|COMMIT/;

/**
 * Where a connection is cut: `asked`, when the commit has gone to Postgres, which may or may not come to read it;
 * `answered`, when it has committed and its answer does not get through. `held`: it has committed something, and its
 * answer is kept back until the client ends.
 * @typedef {'nowhere' | 'asked' | 'answered' | 'held'} Cut
 */

/**
 * `committing`: what the connection was last told to commit. `kept`: of an answer that is held.
 * @typedef {{ client: import('node:net').Socket, server: import('node:net').Socket, cut: Cut, committing: string, kept: Buffer }} Pair
 */

/**
 * The way to Postgres: it can be made slow, and it can be cut at the worst time, when Postgres has been told to commit
 * and the client has not learnt that it did.
 */
export class PostgresProxy {
  /** Milliseconds that every message takes, each way. */
  delayMs = () => 0;
  /** Asked at every commit, with the name of the statement. @type {(name: string) => Cut} */
  whereToCut = () => 'nowhere';
  cuts = 0;
  /** Answers that were kept back. */
  held = 0;
  /** How often a connection was cut at each statement, by its name, or at `COMMIT`. @type {Map<string, number>} */
  cutAt = new Map();
  /** @type {Set<Pair>} */
  #pairs = new Set();
  #listener = createServer((client) => this.#join(client));

  /** @param {string} databaseUrl */
  constructor(databaseUrl) {
    this.target = new URL(databaseUrl);
  }

  async start() {
    this.#listener.listen(0, '127.0.0.1');
    await once(this.#listener, 'listening');
  }

  /** The database's URL by way of the proxy. */
  get url() {
    const url = new URL(this.target);
    url.hostname = '127.0.0.1';
    url.port = String(/** @type {import('node:net').AddressInfo} */ (this.#listener.address()).port);
    return url.href;
  }

  async stop() {
    const closed = once(this.#listener, 'close');
    this.#listener.close();
    for (const pair of [...this.#pairs]) end(pair);
    await closed;
  }

  /** @param {import('node:net').Socket} client */
  #join(client) {
    const server = connect({ host: this.target.hostname, port: Number(this.target.port), noDelay: true });
    client.setNoDelay(true);
    /** @type {Pair} */
    const pair = { client, server, cut: 'nowhere', committing: '', kept: Buffer.alloc(0) };
    this.#pairs.add(pair);
    this.#pass(client, server, (bytes) => {
      const found = committing.exec(bytes.toString('latin1'));
      if (found) {
        pair.committing = found[1] ?? found[0];
        pair.cut = this.whereToCut(pair.committing);
      }
      if (pair.cut === 'asked') server.write(bytes, () => this.#cut(pair));
      return pair.cut !== 'asked';
    });
    this.#pass(server, client, (bytes) => {
      if (pair.cut === 'held') return this.#hold(pair, bytes);
      if (pair.cut === 'answered') this.#cut(pair);
      return pair.cut !== 'answered';
    });
    for (const socket of [client, server]) {
      socket.on('error', () => {}); // `close` follows
      socket.on('close', () => {
        this.#pairs.delete(pair);
        end(pair);
      });
    }
  }

  /**
   * An answer without a row is passed on when all of it is there: nothing was committed.
   * @param {Pair} pair
   * @param {Buffer} bytes
   * @returns {false} whether these bytes may pass as they are
   */
  #hold(pair, bytes) {
    const isHeldAlready = readAnswer(pair.kept).isWhole;
    pair.kept = Buffer.concat([pair.kept, bytes]);
    const { isWhole, rows } = readAnswer(pair.kept);
    if (!isWhole || isHeldAlready) return false;
    if (rows > 0) {
      this.held += 1;
      return false;
    }
    pair.client.write(pair.kept);
    pair.kept = Buffer.alloc(0);
    pair.cut = 'nowhere';
    return false;
  }

  /** @param {Pair} pair */
  #cut(pair) {
    this.cuts += 1;
    this.cutAt.set(pair.committing, (this.cutAt.get(pair.committing) ?? 0) + 1);
    end(pair);
  }

  /**
   * @param {import('node:net').Socket} from
   * @param {import('node:net').Socket} to
   * @param {(bytes: Buffer) => boolean} mayPass
   */
  #pass(from, to, mayPass) {
    // One after the other, even if a later one has the shorter delay.
    let line = Promise.resolve();
    from.on('data', (bytes) => {
      if (!mayPass(bytes)) return;
      const delayMs = this.delayMs();
      const after = delayMs > 0 ? new Promise((resolve) => setTimeout(resolve, delayMs)) : undefined;
      line = line.then(async () => {
        await after;
        if (!to.destroyed) to.write(bytes);
      });
    });
    from.on('end', () => void line.then(() => to.end()));
  }
}

/** @param {Pair} pair */
function end({ client, server }) {
  for (const socket of [client, server]) {
    // One that is shutting down cannot be reset: Node would neither close it nor ever come to an end itself
    // (TCPWrap::Reset).
    if (socket.writableEnded) socket.destroy();
    else socket.resetAndDestroy();
  }
}

const [dataRow, readyForQuery] = ['D', 'Z'].map((letter) => letter.charCodeAt(0));

/**
 * Messages of Postgres, each of which begins with a letter and its length: when the last one says that it is ready for
 * the next query, what it was asked before has committed.
 * @param {Buffer} bytes from the beginning of an answer on
 * @returns {{ rows: number, isWhole: boolean }}
 */
export function readAnswer(bytes) {
  let rows = 0;
  for (let at = 0; at + 5 <= bytes.length; at += 1 + bytes.readInt32BE(at + 1)) {
    if (bytes[at] === dataRow) rows += 1;
    if (bytes[at] === readyForQuery) return { rows, isWhole: true };
  }
  return { rows, isWhole: false };
}
