import type { InvalidParam } from '../infra/http/problem.js';
import type { Channel } from './channel.js';
import { nameOfCharacteristic } from './channels-io.js';
import { canonicalName } from './filter-names.js';

/**
 * The fields of a deduplication that name no filter of the channel. A misspelt name would be absent from every notification, and so
 * make notifications the same that are not.
 */
export function unknownCharacteristics(
  fields: readonly string[],
  { filters, canonicalFilters }: Pick<Channel, 'filters' | 'canonicalFilters'>,
): InvalidParam[] {
  if (filters.length === 0) return []; // then any name is allowed
  return fields.flatMap((field, index): InvalidParam[] => {
    const name = nameOfCharacteristic(field);
    if (name === undefined || canonicalFilters.has(canonicalName(name))) return [];
    const reason = `Not one of the filters of the channel (${filters.join(', ')}).`;
    return [{ name: `deduplication.fields.${index}`, code: 'invalid', reason }];
  });
}
