import { keyOf, type Alert, type Finding } from './alert.js';
import type { Evaluated } from './evaluate.js';

export interface Changes<Open extends Alert> {
  opened: Finding[];
  /** Open before and now, with what is known by now. */
  goOn: { alert: Open; finding: Finding }[];
  resolved: Open[];
}

/** How the open alerts change by what was found. */
export function changesOf<Open extends Alert>(
  open: readonly Open[],
  { findings, isUnseen }: Pick<Evaluated, 'findings' | 'isUnseen'>,
): Changes<Open> {
  const byKey = new Map(open.map((alert) => [keyOf(alert), alert]));
  const changes: Changes<Open> = { opened: [], goOn: [], resolved: [] };
  for (const finding of findings) {
    const alert = byKey.get(keyOf(finding));
    if (alert) changes.goOn.push({ alert, finding });
    else changes.opened.push(finding);
    byKey.delete(keyOf(finding));
  }
  changes.resolved = [...byKey.values()].filter((alert) => !isUnseen(alert));
  return changes;
}
