/** The partition of the audit log for one month, by UTC. */
export interface Month {
  name: string;
  /** ISO 8601: its first moment, and that of the next month. */
  from: string;
  to: string;
}

/** The months from the one of `fromMs` to the one of `toMs`, both included. */
export function monthsBetween(fromMs: number, toMs: number): Month[] {
  const months: Month[] = [];
  for (let start = startOfMonth(fromMs); start <= toMs; start = startOfMonth(start, 1)) {
    const [from, to] = [new Date(start).toISOString(), new Date(startOfMonth(start, 1)).toISOString()];
    months.push({ name: `audit_entry_${from.slice(0, 7).replace('-', '')}`, from, to });
  }
  return months;
}

const startOfMonth = (ms: number, later = 0): number =>
  Date.UTC(new Date(ms).getUTCFullYear(), new Date(ms).getUTCMonth() + later);

/** The month of a partition; undefined for a table that is none. */
export function monthOf(name: string): Month | undefined {
  const stamp = /^audit_entry_(\d{4})(\d\d)$/.exec(name);
  if (!stamp) return undefined;
  const start = Date.UTC(Number(stamp[1]), Number(stamp[2]) - 1);
  return monthsBetween(start, start).find((month) => month.name === name);
}

/**
 * Attached after it is made, as the partitions of the ledger are. A trigger for TRUNCATE is not inherited, one for rows
 * is.
 */
export const createMonth = (month: Month): string =>
  `CREATE TABLE ${month.name} (LIKE audit_entry INCLUDING DEFAULTS);
   CREATE TRIGGER no_truncate BEFORE TRUNCATE ON ${month.name}
     FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_audit_entry();
   ${attachMonth(month)}`;

export const attachMonth = ({ name, from, to }: Month): string =>
  `ALTER TABLE audit_entry ATTACH PARTITION ${name} FOR VALUES FROM ('${from}') TO ('${to}')`;
