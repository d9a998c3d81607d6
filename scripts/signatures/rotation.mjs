// Deliveries of a running Heraut, verified while the keys of their subscription are rotated.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { callOf, forgeriesOf, signaturesOf } from './call.mjs';

/** Publications under way at once. */
const together = 16;
/** A rotated key is ended by hand this many rotations later; until then it signs. */
const keptRotations = 3;
const graceSeconds = 3600;
const arrivesWithinMs = 60_000;

/** @typedef {{ id: string, key: string }} Known the key to verify with: a secret, or a public key */
/** @typedef {Record<import('./call.mjs').Scheme, Known>} Generation */

/**
 * @typedef {object} Verified
 * @property {string} name
 * @property {import('./call.mjs').Scheme} scheme
 * @property {number} accepted
 * @property {number} refused
 * @property {Set<string>} forgeries that it was shown
 */

/**
 * The rotations that a run has, and what comes of it.
 * @typedef {object} Outcome
 * @property {number} deliveries
 * @property {number} rotations of each of the two keys
 * @property {number} mostSignatures in one header
 * @property {Verified[]} verified
 * @property {string[]} wrong in sentences, the first few
 * @property {{ keys: import('./call.mjs').Keys, call: import('./call.mjs').Call }[]} samples genuine calls, the last ones
 * @property {import('./call.mjs').Keys} endedKeys that no call is signed with any more
 */

const mostWrong = 10;
const samplesKept = 5;

/** Every verifier knows one key of its scheme at a time, as receivers do. */
export class Rotation {
  /** From the first to the current one. @type {Generation[]} */
  #generations = [];
  /** Those who took the new key into use at once know the last generation; the others that before it, for a while. */
  #isLateBehind = false;
  #published = 0;
  #mostSignatures = 0;
  /** @type {string[]} */
  #wrong = [];
  /** @type {{ keys: import('./call.mjs').Keys, call: import('./call.mjs').Call }[]} */
  #samples = [];

  /**
   * @param {import('../bench/installation.mjs').Installation} installation
   * @param {import('./verifiers.mjs').Verifier[]} verifiers
   * @param {import('../command.mjs').Run} run
   */
  constructor(installation, verifiers, { log, onEnd }) {
    this.installation = installation;
    this.verifiers = verifiers;
    this.log = log;
    this.onEnd = onEnd;
    /** @type {Verified[]} */
    this.verified = verifiers.map(({ name, scheme }) => ({
      name,
      scheme,
      accepted: 0,
      refused: 0,
      forgeries: new Set(),
    }));
    /** By the id of the notification. @type {Map<string, import('./call.mjs').Call>} */
    this.arrived = new Map();
  }

  /**
   * @param {{ deliveries: number, rotations: number }} how
   * @returns {Promise<Outcome>}
   */
  async run({ deliveries, rotations }) {
    const subscription = await this.#subscribe();
    const phases = 2 * (rotations + 1);
    for (let phase = 0; phase < phases; phase++) {
      if (phase % 2 === 0) await this.#rotate(subscription, phase / 2);
      this.#isLateBehind = phase > 0 && phase % 2 === 0;
      await this.#deliver(Math.floor((deliveries * (phase + 1)) / phases) - this.#published);
      this.log(`${this.#published} deliveries verified, ${Math.floor(phase / 2)} rotations`);
    }
    const keysOf = (/** @type {Generation | undefined} */ one) => ({ v1: one?.v1.key ?? '', v1a: one?.v1a.key ?? '' });
    return {
      deliveries: this.#published,
      rotations,
      mostSignatures: this.#mostSignatures,
      verified: this.verified,
      wrong: this.#wrong,
      samples: this.#samples,
      endedKeys: keysOf(this.#generations[0]),
    };
  }

  /** @returns {Promise<string>} the URL of the subscription */
  async #subscribe() {
    const server = createServer((request, response) => {
      /** @type {Buffer[]} */
      const chunks = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => {
        response.writeHead(request.headers.authorization ? 204 : 401).end();
        const call = callOf(request.headers, Buffer.concat(chunks));
        if (call.id !== undefined) this.arrived.set(call.id, call);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.onEnd(() => {
      server.close();
      server.closeAllConnections();
    });
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    await this.installation.createChannel('signed');
    return this.installation.subscribe({ channel: 'signed', callbackUrl: `http://127.0.0.1:${port}/` });
  }

  /**
   * The first time the keys are made; later each is rotated, and one of long before is ended.
   * @param {string} subscription
   * @param {number} nr
   */
  async #rotate(subscription, nr) {
    const keys = `${subscription}/signing-keys`;
    const last = this.#generations.at(-1);
    const next = async (/** @type {import('./call.mjs').Scheme} */ scheme) => {
      const path = last ? `${keys}/${last[scheme].id}/rotate` : keys;
      const { body } = await this.#call('POST', path, last ? { graceSeconds } : { scheme });
      const { id, secret, publicKey } = JSON.parse(body);
      return { id, key: secret ?? publicKey };
    };
    this.#generations.push({ v1: await next('v1'), v1a: await next('v1a') });
    const old = this.#generations[nr - keptRotations];
    if (old) for (const { id } of Object.values(old)) await this.#call('DELETE', `${keys}/${id}`);
  }

  /** @param {number} count */
  async #deliver(count) {
    /** @type {string[]} */
    const ids = [];
    let left = count;
    const publisher = async () => {
      while (left-- > 0) {
        const { headers } = await this.#call('POST', `${this.installation.url}/api/v1/notificaties`, notification());
        ids.push(headers.get('notification-id') ?? '');
      }
    };
    await Promise.all(Array.from({ length: together }, publisher));
    const giveUpMs = performance.now() + arrivesWithinMs;
    while (ids.some((id) => !this.arrived.has(id))) {
      if (performance.now() > giveUpMs) throw new Error('Some deliveries have not arrived.');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    for (const id of ids) await this.#verify(/** @type {import('./call.mjs').Call} */ (this.arrived.get(id)));
    this.arrived.clear();
  }

  /** @param {import('./call.mjs').Call} call */
  async #verify(call) {
    const nr = this.#published++;
    this.#mostSignatures = Math.max(this.#mostSignatures, (call.signature ?? '').split(' ').length);
    const signing = Math.min(this.#generations.length, keptRotations);
    for (const scheme of /** @type {const} */ (['v1', 'v1a'])) {
      const found = signaturesOf(call, scheme).length;
      if (found !== signing) this.#complain(`${call.id} has ${found} signatures of ${scheme} instead of ${signing}`);
    }
    for (const [index, verifier] of this.verifiers.entries()) {
      if (nr % verifier.oneIn === 0) await this.#ask(verifier, index, call, Math.floor(nr / verifier.oneIn));
    }
    const current = /** @type {Generation} */ (this.#generations.at(-1));
    this.#samples.push({ keys: { v1: current.v1.key, v1a: current.v1a.key }, call });
    this.#samples.splice(0, this.#samples.length - samplesKept);
  }

  /**
   * @param {import('./verifiers.mjs').Verifier} verifier
   * @param {number} index
   * @param {import('./call.mjs').Call} call
   * @param {number} nr of its calls
   */
  async #ask({ name, scheme, isGenuine }, index, call, nr) {
    const verified = /** @type {Verified} */ (this.verified[index]);
    // Every other verifier is late: it takes the new key into use only half-way to the next rotation.
    const isBehind = this.#isLateBehind && index % 2 === 1;
    const right = this.#generations.at(isBehind ? -2 : -1)?.[scheme].key ?? '';
    if (await isGenuine(right, call)) verified.accepted += 1;
    else this.#complain(`${name} refuses ${call.id} (${scheme})`);

    const ended = this.#generations.at(-1 - keptRotations)?.[scheme].key;
    const forgeries = forgeriesOf(scheme).filter(([forgery]) => ended !== undefined || forgery !== 'another key');
    const [forgery, forge] = /** @type {(typeof forgeries)[number]} */ (forgeries[nr % forgeries.length]);
    const { key = right, ...forged } = forge(call, { right, other: ended ?? '', scheme });
    verified.forgeries.add(forgery);
    if (await isGenuine(key, { ...call, ...forged })) this.#complain(`${name} accepts (${scheme}): ${forgery}`);
    else verified.refused += 1;
  }

  /** @param {string} sentence */
  #complain(sentence) {
    if (this.#wrong.length < mostWrong) this.#wrong.push(sentence);
  }

  /**
   * @param {'POST' | 'DELETE'} method
   * @param {string} url
   * @param {object} [body]
   */
  async #call(method, url, body) {
    const headers = {
      authorization: `Bearer ${this.installation.token}`,
      ...(body && { 'content-type': 'application/json' }),
    };
    const response = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${text}`);
    return { headers: response.headers, body: text };
  }
}

/** With characters that have several bytes: what is signed is bytes. */
const notification = () => ({
  kanaal: 'signed',
  hoofdObject: 'https://example.com/zaken/1',
  resource: 'zaak',
  resourceUrl: 'https://example.com/zaken/1',
  actie: 'create',
  aanmaakdatum: '2026-11-01T10:00:00Z',
  kenmerken: { onderwerp: 'Zaak één € 😀' },
});
