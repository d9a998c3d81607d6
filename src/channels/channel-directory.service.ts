import { Injectable } from '@nestjs/common';
import { Catalogue, type CatalogueDirectory } from '../catalogue/catalogue.service.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import type { Channel } from './channel.js';
import { canonicalName } from './filter-names.js';

interface ChannelRow {
  id: string;
  name: string;
  documentation_link: string;
  filters: string[];
  deduplicate_by: string[] | null;
  deduplicate_within: number;
  max_age: number | null;
  body_retention_days: number | null;
}

const changedSince = statement(
  'channels-changed-since',
  `SELECT id, name, documentation_link, filters, deduplicate_by, deduplicate_within, max_age, body_retention_days
   FROM channel WHERE version > $known ORDER BY version`,
);

/** Every channel, in memory. Channels are never deleted and never change their name. */
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
    for (const row of await this.postgres.query<ChannelRow>(changedSince, { known })) {
      const channel = {
        id: row.id,
        name: row.name,
        documentationLink: row.documentation_link,
        filters: row.filters,
        canonicalFilters: new Set(row.filters.map(canonicalName)),
        deduplication: row.deduplicate_by && { fields: row.deduplicate_by, withinSeconds: row.deduplicate_within },
        maxAgeSeconds: row.max_age,
        bodyRetentionDays: row.body_retention_days,
      };
      this.byName.set(channel.name, channel);
      this.byId.set(channel.id, channel);
    }
  }
}
