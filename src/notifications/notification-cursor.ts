import { textOfUuids, uuidsIn } from '../infra/uuid-text.js';

/** Where a list of notifications goes on, as text that callers send back as it is. */
export const toCursor = (id: string): string => textOfUuids(id);

/** @returns undefined for anything that `toCursor` does not write */
export function fromCursor(cursor: string): string | undefined {
  const [id, ...others] = uuidsIn(cursor);
  return others.length === 0 ? id : undefined;
}
