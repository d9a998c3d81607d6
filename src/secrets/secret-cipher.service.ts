import { Injectable } from '@nestjs/common';
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { KeyRing } from './key-ring.js';

/** A stored secret that no key of the ring decrypts. The message names the key and the place, never the secret. */
export class UnreadableSecret extends Error {
  constructor(
    readonly keyId: string,
    readonly place: string,
    trouble: string,
  ) {
    super(`${place} is encrypted with the key ${keyId}, ${trouble}`);
  }
}

const prefix = 'enc:';
const [nonceBytes, tagBytes] = [12, 16];
const options = { authTagLength: tagBytes };

/**
 * Secrets as they are stored (docs/decisions/0032): `enc:<id of the key>:<base64url of nonce, ciphertext and tag>`, by
 * AES-256-GCM. Everything else is plain text, as it is written without a key ring. There, a text that begins like an
 * encrypted one is written as `enc::<base64url>`, so that nobody can register a secret that is then found to be
 * undecipherable. An empty text stays empty.
 */
@Injectable()
export class SecretCipher {
  /** Of the key that encrypts; undefined: there is none, and secrets are stored as they are. */
  readonly keyId: string | undefined;

  constructor(private readonly ring: KeyRing) {
    [this.keyId] = ring.keys();
  }

  /**
   * @param place row and column, e.g. `subscription.auth/<uuid>`: moved elsewhere, what is stored cannot be decrypted
   */
  encrypt(secret: string, place: string): string {
    if (secret === '') return '';
    const id = this.keyId;
    if (id === undefined)
      return secret.startsWith(prefix) ? `${prefix}:${Buffer.from(secret).toString('base64url')}` : secret;
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv('aes-256-gcm', this.ring.get(id)!, nonce, options).setAAD(Buffer.from(place));
    const bytes = Buffer.concat([nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${prefix}${id}:${bytes.toString('base64url')}`;
  }

  /**
   * Whether two texts that are stored in that place stand for the same secret. One that cannot be decrypted is another.
   */
  isSame(one: string, other: string, place: string): boolean {
    if (one === other) return true;
    const secret = this.decryptIfPossible(one, place);
    return secret !== undefined && secret === this.decryptIfPossible(other, place);
  }

  /** Undefined: it cannot be decrypted here. */
  decryptIfPossible(stored: string, place: string): string | undefined {
    try {
      return this.decrypt(stored, place);
    } catch (error) {
      if (error instanceof UnreadableSecret) return undefined;
      throw error;
    }
  }

  /** @throws {UnreadableSecret} */
  decrypt(stored: string, place: string): string {
    if (!stored.startsWith(prefix)) return stored;
    const [, id = '', encoded = ''] = stored.split(':');
    const bytes = Buffer.from(encoded, 'base64url');
    if (id === '') return bytes.toString('utf8');
    const key = this.ring.get(id);
    if (!key) throw new UnreadableSecret(id, place, 'which is not in the key ring');
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), options)
        .setAAD(Buffer.from(place))
        .setAuthTag(bytes.subarray(-tagBytes));
      const text = decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8');
      return text + decipher.final('utf8');
    } catch {
      throw new UnreadableSecret(id, place, 'but not with the one that has this id in the key ring');
    }
  }
}
