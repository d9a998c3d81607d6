import { createPrivateKey, createPublicKey, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';

/** How Standard Webhooks sign: `v1` is HMAC-SHA256 with a secret that both sides have, `v1a` is Ed25519. */
export const signingSchemes = ['v1', 'v1a'] as const;
export type SigningScheme = (typeof signingSchemes)[number];

export const secretPrefixes = { v1: 'whsec_', v1a: 'whsk_' } as const satisfies Record<SigningScheme, string>;
const publicPrefix = 'whpk_';

const newSecretBytes = 32;
/** Bytes of a secret for `v1`. */
const [shortest, longest] = [24, 64];
/** Of an Ed25519 key, its seed and its public key alike. */
const ed25519Bytes = 32;
/** The bytes before the seed in PKCS#8 (RFC 8410 §7). */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A text that is no secret of its scheme. The message never holds the text. */
export class InvalidSecret extends Error {}

/** One key that deliveries are signed with. */
export class SigningKey {
  /** Neither a log nor an answer can show it. */
  readonly #secret: string;
  #object: KeyObject | undefined;

  /**
   * @param secret with its prefix
   * @param endsAt milliseconds since 1970: from then on it does not sign; null: it has no end yet
   */
  constructor(
    readonly id: string,
    readonly scheme: SigningScheme,
    secret: string,
    readonly endsAt: number | null,
  ) {
    this.#secret = secret;
  }

  /** @param at milliseconds since 1970 */
  signsAt(at: number): boolean {
    return this.endsAt === null || this.endsAt > at;
  }

  /**
   * Made once: to read the secret costs as much as to sign with it.
   * @throws {InvalidSecret}
   */
  get object(): KeyObject {
    return (this.#object ??= keyObjectOf(this.scheme, this.#secret));
  }
}

/** Both with their prefixes. */
export interface KeyTexts {
  secret: string;
  /** For receivers; null of `v1`, which has none. */
  publicKey: string | null;
}

/** A new key, at random. */
export function newKey(scheme: SigningScheme): KeyTexts {
  const bytes = randomBytes(newSecretBytes);
  const whole = scheme === 'v1' ? bytes : Buffer.concat([bytes, publicBytesOf(ed25519KeyOf(bytes))]);
  return textsOf(scheme, secretPrefixes[scheme] + whole.toString('base64'));
}

/**
 * A key that was given, with or without its prefix.
 * @throws {InvalidSecret}
 */
export function givenKey(scheme: SigningScheme, given: string): KeyTexts {
  const prefix = secretPrefixes[scheme];
  return textsOf(scheme, given.startsWith(prefix) ? given : prefix + given);
}

function textsOf(scheme: SigningScheme, secret: string): KeyTexts {
  const key = keyObjectOf(scheme, secret);
  return { secret, publicKey: scheme === 'v1' ? null : publicPrefix + publicBytesOf(key).toString('base64') };
}

function keyObjectOf(scheme: SigningScheme, secret: string): KeyObject {
  const prefix = secretPrefixes[scheme];
  const text = secret.slice(prefix.length);
  const bytes = Buffer.from(text, 'base64');
  // Node reads past what is not base64; a receiver's library would refuse it, or read another key.
  if (!secret.startsWith(prefix) || bytes.toString('base64') !== text) {
    throw new InvalidSecret(`Not ${prefix} and standard base64 with its padding.`);
  }
  if (scheme === 'v1') {
    if (bytes.length < shortest || bytes.length > longest) {
      throw new InvalidSecret(`Has ${bytes.length} bytes; must have ${shortest} to ${longest}.`);
    }
    return createSecretKey(bytes);
  }
  if (bytes.length !== 2 * ed25519Bytes) {
    throw new InvalidSecret(`Has ${bytes.length} bytes; must have ${2 * ed25519Bytes}, the seed and the public key.`);
  }
  const key = ed25519KeyOf(bytes.subarray(0, ed25519Bytes));
  if (!publicBytesOf(key).equals(bytes.subarray(ed25519Bytes))) {
    throw new InvalidSecret('The public key in it does not belong to its seed.');
  }
  return key;
}

const ed25519KeyOf = (seed: Buffer): KeyObject =>
  createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: 'der', type: 'pkcs8' });

const publicBytesOf = (key: KeyObject): Buffer =>
  createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-ed25519Bytes);
