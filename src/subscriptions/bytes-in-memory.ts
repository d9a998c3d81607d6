import type { SubscriptionEntity } from './subscription.entity.js';

/** As it is stored: that is known of each, also where its secrets cannot be decrypted. */
export type Kept = Pick<SubscriptionEntity, 'callbackUrl' | 'auth' | 'credentials' | 'channels'> & {
  /** How many. Their secrets differ little in length. */
  signingKeys: number;
};

// Measured, as docs/decisions/0079 tells: the objects of an entry and of a demand, in the list and in the index.
const bytesOfEntry = 500;
const bytesOfDemand = 250;
const bytesOfSigningKey = 800;
/** Names and values are in the list, and as keys of the index. */
const copies = 2;

/**
 * Roughly how much memory a subscription takes in each process beyond the half kilobyte that every one takes: at least
 * half of it, at most twice as much.
 */
export function bytesInMemory({ callbackUrl, auth, credentials, channels, signingKeys }: Kept): number {
  let bytes =
    bytesOfSigningKey * signingKeys + bytesOfText(callbackUrl) + bytesOfText(auth) + bytesOfText(credentials ?? '');
  for (const { channel, filters } of channels) {
    bytes += bytesOfEntry + copies * bytesOfText(channel);
    for (const [name, value] of Object.entries(filters))
      bytes += bytesOfDemand + copies * (bytesOfText(name) + bytesOfText(value));
  }
  return bytes;
}

/**
 * Two for each character where one of them is beyond Latin-1, as V8 keeps them; those between ASCII and that are
 * counted as if they were.
 */
const bytesOfText = (text: string): number => (Buffer.byteLength(text) === text.length ? 1 : 2) * text.length;
