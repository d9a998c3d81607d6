import { Injectable } from '@nestjs/common';
import { Catalogue, type CatalogueDirectory } from '../catalogue/catalogue.service.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { channelOf, type StoredChannel } from './channel.entity.js';
import type { Channel } from './channel.js';

const changedSince = statement(
  'channels-changed-since',
  `SELECT id, name, documentation_link AS "documentationLink", filters, deduplicate_by AS "deduplicateBy",
     deduplicate_within AS "deduplicateWithin", max_age AS "maxAge", body_retention_days AS "bodyRetentionDays", deleted_at IS NOT NULL AS "isDeleted"
   FROM channel WHERE version > $known ORDER BY version`,
);

/**
 * Every channel, in memory. They never change their names, and one that is removed and made again has the id that it
 * had.
 */
@Injectable()
export class ChannelDirectory implements CatalogueDirectory {
  private readonly byName = new Map<string, Channel>();
  private readonly byId = new Map<string, Channel>();

  constructor(
    catalogue: Catalogue,
    private readonly postgres: Postgres,
  ) {
    catalogue.register(this);
  }

  find(name: string): Channel | undefined {
    return this.byName.get(name);
  }

  get(id: string): Channel | undefined {
    return this.byId.get(id);
  }

  /** In the order of their names. */
  list(): Channel[] {
    return [...this.byName.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  }

  async refresh(known: number): Promise<void> {
    const rows = await this.postgres.query<StoredChannel & { isDeleted: boolean }>(changedSince, { known });
    if (known === 0) {
      this.byName.clear();
      this.byId.clear();
    }
    for (const row of rows) {
      const channel = channelOf(row);
      if (row.isDeleted) {
        this.byName.delete(channel.name);
        this.byId.delete(channel.id);
        continue;
      }
      this.byName.set(channel.name, channel);
      this.byId.set(channel.id, channel);
    }
  }
}
