import { createSecretKey, randomBytes, type KeyObject } from 'node:crypto';

/** The keys that stored secrets are encrypted with, by their ids. The first one encrypts, all of them decrypt. */
export type KeyRing = ReadonlyMap<string, KeyObject>;

/** A key ring that cannot be used, or does not fit what is stored. The message is for an operator and holds no key. */
export class KeyRingRefused extends Error {}

const entryForm = /^([\w-]{1,32}):([A-Za-z0-9+/_-]{43})=?$/;

/**
 * @param entries each `id:base64 of 32 bytes`
 * @param origin where they come from, for the message
 * @throws {KeyRingRefused} naming entries by their position: a malformed one may be a key
 */
export function keyRingOf(entries: readonly string[], origin: string): KeyRing {
  const ring = new Map<string, KeyObject>();
  for (const [index, entry] of entries.entries()) {
    const [, id, key] = entryForm.exec(entry) ?? [];
    if (id === undefined || key === undefined)
      throw new KeyRingRefused(`${origin}: entry ${index + 1} is not \`id:base64 of 32 bytes\`.`);
    if (ring.has(id)) throw new KeyRingRefused(`${origin}: the id ${id} occurs twice.`);
    ring.set(id, createSecretKey(Buffer.from(key, 'base64')));
  }
  return ring;
}

/** The entries of a text that has them on lines of their own, or separated by commas. */
export const entriesOf = (text: string): string[] => text.split(/[\s,]+/).filter((entry) => entry !== '');

/** An entry with a new key, and an id that no other has. */
export const newEntry = (): string => `${randomBytes(4).toString('hex')}:${randomBytes(32).toString('base64')}`;
