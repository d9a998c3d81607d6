import { createHmac, sign } from 'node:crypto';
import type { SigningKey } from './signing-key.js';

export interface MessageToSign {
  /** Its `webhook-id`; holds no dot. */
  id: string;
  /** Milliseconds since 1970 when this attempt begins. */
  at: number;
  /** The bytes that are sent. */
  body: Buffer;
}

/**
 * The headers by which a receiver knows that a message is ours, new and whole (Standard Webhooks 1.0.0): one signature
 * of each key that signs at that time, in the order of `keys`. Undefined: none of them does.
 * @throws {InvalidSecret} for a key that cannot be used
 */
export function signatureHeaders(
  keys: readonly SigningKey[],
  { id, at, body }: MessageToSign,
): Record<'webhook-timestamp' | 'webhook-signature', string> | undefined {
  const timestamp = String(Math.floor(at / 1000));
  const head = `${id}.${timestamp}.`;
  /** Ed25519 signs one piece of memory, so here the body is copied, once. */
  let whole: Buffer | undefined;
  let signatures = '';
  for (const key of keys) {
    if (!key.signsAt(at)) continue;
    if (signatures !== '') signatures += ' ';
    if (key.scheme === 'v1') {
      signatures += `v1,${createHmac('sha256', key.object).update(head).update(body).digest('base64')}`;
    } else {
      whole ??= Buffer.concat([Buffer.from(head), body]);
      signatures += `v1a,${sign(null, whole, key.object).toString('base64')}`;
    }
  }
  return signatures === '' ? undefined : { 'webhook-timestamp': timestamp, 'webhook-signature': signatures };
}
