/** Where a list of explanations goes on. */
export interface ExplanationKey {
  /** `first`: subscriptions that get the notification; `others`: those that do not. */
  part: 'first' | 'others';
  /** The subscription that was explained last; null: none of this part was. */
  after: string | null;
}

/** Sorts before every id. */
export const lowestId = '00000000-0000-0000-0000-000000000000';

/** Text that callers send back as it is. */
export const toCursor = ({ part, after }: ExplanationKey): string =>
  `${part === 'first' ? 'f' : 'o'}${(after ?? lowestId).replaceAll('-', '')}`;

/** @returns undefined for anything that `toCursor` does not write */
export function fromCursor(cursor: string): ExplanationKey | undefined {
  const parts = /^([fo])([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/.exec(cursor);
  if (!parts) return undefined;
  const id = parts.slice(2).join('-');
  return { part: parts[1] === 'f' ? 'first' : 'others', after: id === lowestId ? null : id };
}
