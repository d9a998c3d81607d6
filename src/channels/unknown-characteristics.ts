import { ValidationProblem, type InvalidParam } from '../infra/http/problem.js';
import type { ChangesOfChannel } from './channel-changes.js';
import type { Channel } from './channel.js';
import { nameOfCharacteristic } from './channels-io.js';
import { canonicalName, listedNames } from './filter-names.js';

/**
 * The fields of a deduplication that name no filter of the channel. A misspelt name would be absent from every
 * notification, and so make notifications the same that are not.
 */
export function unknownCharacteristics(
  fields: readonly string[],
  { filters, canonicalFilters }: Pick<Channel, 'filters' | 'canonicalFilters'>,
): InvalidParam[] {
  if (filters.length === 0) return []; // then any name is allowed
  return fields.flatMap((field, index): InvalidParam[] => {
    const name = nameOfCharacteristic(field);
    if (name === undefined || canonicalFilters.has(canonicalName(name))) return [];
    const reason = `Not one of the filters of the channel (${listedNames(filters)}).`;
    return [{ name: `deduplication.fields.${index}`, code: 'invalid', reason }];
  });
}

/**
 * @param before as it is; of a new channel, without names and rules
 * @throws {ValidationProblem} when the changes leave a deduplication that names no filter of the channel. One that does
 *   so already may stay: publishers can take away filters.
 */
export function refuseUnknown(changes: ChangesOfChannel, before: Pick<Channel, 'filters' | 'deduplication'>): void {
  if (changes.filters === undefined && changes.deduplication === undefined) return;
  const { filters = before.filters, deduplication = before.deduplication } = changes;
  const unknown = unknownCharacteristics(deduplication?.fields ?? [], {
    filters,
    canonicalFilters: new Set(filters.map(canonicalName)),
  });
  if (unknown.length === 0) return;
  if (changes.deduplication !== undefined) throw new ValidationProblem(unknown);
  const reason = 'The deduplication of the channel compares a characteristic that is not among them.';
  throw new ValidationProblem([{ name: 'filters', code: 'invalid', reason }]);
}
