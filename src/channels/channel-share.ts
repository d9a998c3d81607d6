import type { Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import type { ChannelEntity } from './channel.entity.js';

/** The share of all channels together in the memory of each process. */
export interface ChannelShare {
  readonly channels: number;
  /** Roughly: at least half of it, at most twice as much. */
  readonly bytes: number;
}

// Measured, as docs/decisions/0088 tells: the object of a channel in its two indexes, and that of a filter in the list
// and in the set.
const bytesOfChannel = 1000;
const bytesOfFilter = 150;
/** The name of a filter as it was registered, and as it is compared. */
const copies = 2;

const share = statement(
  'channel-share',
  `SELECT count(*)::int AS channels,
     coalesce(sum(${bytesOfChannel} + octet_length(name) + octet_length(documentation_link)
       + ${bytesOfFilter} * cardinality(filters) + ${copies} * octet_length(array_to_string(filters, ''))), 0)::float8 AS bytes
   FROM channel WHERE deleted_at IS NULL`,
);

/** Of all that are stored. */
export async function readShare(query: Query): Promise<ChannelShare> {
  const [row] = await query<ChannelShare>(share);
  return row!;
}

/** Of these alone, in the same way. */
export function shareOf(
  described: Iterable<Pick<ChannelEntity, 'name' | 'documentationLink' | 'filters'>>,
): ChannelShare {
  let [channels, bytes] = [0, 0];
  for (const { name, documentationLink, filters } of described) {
    channels++;
    bytes += bytesOfChannel + Buffer.byteLength(name) + Buffer.byteLength(documentationLink);
    for (const filter of filters) bytes += bytesOfFilter + copies * Buffer.byteLength(filter);
  }
  return { channels, bytes };
}
