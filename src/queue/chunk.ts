import type { HandedOut } from '../ledger/delivery.js';

/** Deliveries that travel as one message. No URL and no secret: the worker knows those from the catalogue. */
export interface Chunk {
  /** The worker must know the catalogue at least at this version. */
  catalogueVersion: number;
  /** Milliseconds since 1970 by the ledger's clock: when the ledger handed these out. */
  queuedAt: number;
  deliveries: HandedOut[];
}

/** Deliveries. */
export const mostOfChunk = 64;
const maxBytes = 256 * 1024;

/** Memory of one delivery, beside its text: about. */
export const deliveryBytes = 500;

/** Memory of a chunk: about. */
export function bytesOf({ deliveries }: Chunk): number {
  let bytes = deliveries.length * deliveryBytes;
  let previous: Buffer | null = null;
  for (const { body } of deliveries) {
    if (body && body !== previous) bytes += body.length; // several may share one
    previous = body;
  }
  return bytes;
}

/** Cuts deliveries into chunks: a message costs the broker the same whether it carries one or 64. */
export function cutIntoChunks(deliveries: HandedOut[], catalogueVersion: number, queuedAt: number): Chunk[] {
  const chunks: Chunk[] = [];
  let current: HandedOut[] = [];
  let bytes = 0;
  let previousId = '';
  for (const delivery of deliveries) {
    // A text that several deliveries of a chunk share travels once.
    const added = delivery.notificationId === previousId ? 0 : (delivery.body?.length ?? 0);
    if (current.length > 0 && (current.length === mostOfChunk || bytes + added > maxBytes)) {
      chunks.push({ catalogueVersion, queuedAt, deliveries: current });
      current = [];
      bytes = 0;
    }
    current.push(delivery);
    bytes += current.length === 1 ? (delivery.body?.length ?? 0) : added;
    previousId = delivery.notificationId;
  }
  if (current.length > 0) chunks.push({ catalogueVersion, queuedAt, deliveries: current });
  return chunks;
}
