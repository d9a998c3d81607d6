import { asUuid } from '../infra/uuid-text.js';
import { lowestId } from '../ledger/partitions.js';

/** Where a list of explanations goes on. */
export interface ExplanationKey {
  /** `first`: subscriptions that get the notification; `others`: those that do not. */
  part: 'first' | 'others';
  /** The subscription that was explained last; null: none of this part was. */
  after: string | null;
}

/** Text that callers send back as it is. */
export const toCursor = ({ part, after }: ExplanationKey): string =>
  `${part === 'first' ? 'f' : 'o'}${(after ?? lowestId).replaceAll('-', '')}`;

/** @returns undefined for anything that `toCursor` does not write */
export function fromCursor(cursor: string): ExplanationKey | undefined {
  if (!/^[fo][0-9a-f]{32}$/.test(cursor)) return undefined;
  const id = asUuid(cursor.slice(1));
  return { part: cursor.startsWith('f') ? 'first' : 'others', after: id === lowestId ? null : id };
}
