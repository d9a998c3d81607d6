import { Injectable } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Batcher } from '../infra/batcher.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { inHandBounds, type HandedOut } from '../ledger/delivery.js';
import { readBodies, readBodySizes } from '../ledger/read-bodies.js';
import { stillQueued } from '../ledger/still-queued.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { Chunk } from '../queue/chunk.js';
import { BodyMemory } from './body-memory.js';
import { LargeBodies } from './large-bodies.js';

/**
 * Milliseconds. A delivery that has waited for longer, as a chunk behind others or in the line of its endpoint, may
 * have been cancelled meanwhile, or handed out again: the ledger is asked.
 */
export const freshMs = 1000;

/**
 * Of large texts, all chunks together. Short ones come with their chunks: their memory is bounded by the size of a
 * chunk and the number that are taken before their turn, and after their chunk was acknowledged by the number of
 * deliveries in flight and in lines (src/endpoints/rooms.ts).
 */
const largeBytes = 64 * 1024 * 1024;
/** Of these, the calls to one origin: eight of the largest at a time, two to endpoints that are not proven. */
const shares = { origin: largeBytes / 8, unproven: largeBytes / 4, unprovenOrigin: largeBytes / 32 };

/** A delivery with the bytes to send. */
export type Loaded = HandedOut & { body: Buffer };

/** The deliveries of a chunk that are to be sent. */
export interface LoadedChunk {
  deliveries: HandedOut[];
  bodies: LargeBodies;
}

/** Makes of a chunk what is to be sent of it. */
@Injectable()
export class ChunkLoader {
  private readonly memory = new BodyMemory(largeBytes, shares);
  private readonly reading = new Batcher<string, Buffer | undefined>((ids) => this.readTogether(ids), {
    maxItems: 64,
    lingerMs: 0,
    concurrency: 2,
    ...inHandBounds,
  });

  constructor(
    private readonly catalogue: Catalogue,
    private readonly postgres: Postgres,
    private readonly ledgerClock: LedgerClock,
  ) {}

  /** The deliveries of the chunk that are still to be sent, once the catalogue is new enough for them. */
  async load(chunk: Chunk, isRedelivered: boolean): Promise<LoadedChunk> {
    await this.catalogue.reach(chunk.catalogueVersion);
    const ageMs = this.ledgerClock.now() - chunk.queuedAt;
    const isFresh = !isRedelivered && ageMs < freshMs && ageMs > -freshMs;
    const deliveries = isFresh ? chunk.deliveries : await this.stillToSend(chunk);
    for (const delivery of deliveries) if (delivery.isReleased) delivery.releasedWith = chunk.catalogueVersion;
    const large = new Set(deliveries.filter(({ body }) => body === null).map(({ notificationId }) => notificationId));
    const sizes = large.size > 0 ? await readBodySizes(this.postgres, [...large]) : new Map<string, number>();
    return { deliveries, bodies: new LargeBodies(sizes, this.memory, (id) => this.reading.add(id)) };
  }

  private async readTogether(notificationIds: string[]): Promise<(Buffer | undefined)[]> {
    const bodies = await readBodies(this.postgres, notificationIds);
    return notificationIds.map((id) => bodies.get(id));
  }

  /**
   * The deliveries of a chunk that are still queued; from then on subscriptions that were deleted before now are known
   * to be.
   */
  private async stillToSend(chunk: Chunk): Promise<Chunk['deliveries']> {
    const { deliveries, catalogueVersion } = await stillQueued(this.postgres, chunk.deliveries);
    await this.catalogue.reach(catalogueVersion);
    return deliveries;
  }
}
