import { z } from 'zod';
import type { HandedOut } from '../ledger/delivery.js';

/** Deliveries that travel as one message. No URL and no secret: the worker knows those from the catalogue. */
export interface Chunk {
  /** The worker must know the catalogue at least at this version. */
  catalogueVersion: number;
  /** Milliseconds since 1970 by the ledger's clock: when the ledger handed these out. */
  queuedAt: number;
  deliveries: HandedOut[];
}

const maxDeliveries = 64;
const maxCharacters = 256 * 1024;

/** Cuts deliveries into chunks: a message costs the broker the same whether it carries one or 64. */
export function cutIntoChunks(deliveries: HandedOut[], catalogueVersion: number, queuedAt: number): Chunk[] {
  const chunks: Chunk[] = [];
  let current: HandedOut[] = [];
  let characters = 0;
  let previousId = '';
  for (const delivery of deliveries) {
    // A text that several deliveries of a chunk share travels once.
    const added = delivery.notificationId === previousId ? 0 : (delivery.body?.length ?? 0);
    if (current.length > 0 && (current.length === maxDeliveries || characters + added > maxCharacters)) {
      chunks.push({ catalogueVersion, queuedAt, deliveries: current });
      current = [];
      characters = 0;
    }
    current.push(delivery);
    characters += current.length === 1 ? (delivery.body?.length ?? 0) : added;
    previousId = delivery.notificationId;
  }
  if (current.length > 0) chunks.push({ catalogueVersion, queuedAt, deliveries: current });
  return chunks;
}

/*
 * On the wire: JSON of arrays, each text once. [version, catalogueVersion, queuedAt, [[notificationId, body]…],
 * [[nr of the notification, subscriptionId, generation, attempts, failures, replays, expiresAt]…]]
 */
const wireVersion = 1;
const counter = z.number().int().min(0);
const wireFormat = z.tuple([
  z.literal(wireVersion),
  counter,
  z.number(),
  z.array(z.tuple([z.string(), z.string().nullable()])),
  z.array(z.tuple([counter, z.string(), counter, counter, counter, counter, z.number().nullable()])),
]);
type Wire = z.infer<typeof wireFormat>;

export function encodeChunk(chunk: Chunk): Buffer {
  const notifications: Wire[3] = [];
  let previousId = '';
  const deliveries: Wire[4] = chunk.deliveries.map((delivery) => {
    if (delivery.notificationId !== previousId) {
      previousId = delivery.notificationId;
      notifications.push([delivery.notificationId, delivery.body]);
    }
    const { subscriptionId, generation, attempts, failures, replays, expiresAt } = delivery;
    return [notifications.length - 1, subscriptionId, generation, attempts, failures, replays, expiresAt];
  });
  const wire: Wire = [wireVersion, chunk.catalogueVersion, chunk.queuedAt, notifications, deliveries];
  return Buffer.from(JSON.stringify(wire));
}

/** A message that this version of Heraut did not write: of another program, or of another version. */
export class UnreadableChunk extends Error {}

/** @throws {UnreadableChunk} */
export function decodeChunk(content: Buffer): Chunk {
  const [, catalogueVersion, queuedAt, notifications, deliveries] = readWire(content);
  return {
    catalogueVersion,
    queuedAt,
    deliveries: deliveries.map(([nr, subscriptionId, generation, attempts, failures, replays, expiresAt]) => {
      const notification = notifications[nr];
      if (!notification) throw new UnreadableChunk(`delivery of notification number ${nr}, which is not there`);
      return {
        notificationId: notification[0],
        subscriptionId,
        generation,
        attempts,
        failures,
        replays,
        expiresAt,
        body: notification[1],
      };
    }),
  };
}

function readWire(content: Buffer): Wire {
  try {
    return wireFormat.parse(JSON.parse(content.toString('utf8')));
  } catch (cause) {
    throw new UnreadableChunk('not a chunk of deliveries', { cause });
  }
}
