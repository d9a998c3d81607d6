import { Injectable } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Postgres } from '../infra/postgres/postgres.js';
import type { Delivery, HandedOut } from '../ledger/delivery.js';
import { readBodies } from '../ledger/read-bodies.js';
import { stillQueued } from '../ledger/still-queued.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import type { Chunk } from '../queue/chunk.js';

/** A chunk this old has waited behind others: meanwhile it may have been cancelled, or handed out again. */
const freshMs = 1000;

/** A delivery with the bytes to send. */
export type Loaded = Delivery & { body: Buffer };

/** Makes of a chunk what is to be sent of it. */
@Injectable()
export class ChunkLoader {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly postgres: Postgres,
    private readonly heartbeat: Heartbeat,
  ) {}

  /** The deliveries of the chunk that are still to be sent, with their bytes, once the catalogue is new enough for them. */
  async load(chunk: Chunk, isRedelivered: boolean): Promise<Loaded[]> {
    await this.catalogue.reach(chunk.catalogueVersion);
    const ageMs = this.heartbeat.ledgerNow() - chunk.queuedAt;
    const isFresh = !isRedelivered && ageMs < freshMs && ageMs > -freshMs;
    const deliveries = isFresh ? chunk.deliveries : await this.stillToSend(chunk);
    const missing = new Set(deliveries.filter(({ body }) => body === null).map(({ notificationId }) => notificationId));
    if (missing.size === 0) return deliveries.filter(isLoaded);
    const bodies = await readBodies(this.postgres, [...missing]);
    return deliveries
      .map((delivery) => ({ ...delivery, body: delivery.body ?? bodies.get(delivery.notificationId) ?? null }))
      .filter(isLoaded);
  }

  /** What of a chunk is still queued; from then on subscriptions that were deleted before now are known to be. */
  private async stillToSend(chunk: Chunk): Promise<Chunk['deliveries']> {
    const { deliveries, catalogueVersion } = await stillQueued(this.postgres, chunk.deliveries);
    await this.catalogue.reach(catalogueVersion);
    return deliveries;
  }
}

/** False for one that is past its retention: its text is no longer in the ledger. */
const isLoaded = (delivery: HandedOut): delivery is Loaded => delivery.body !== null;
