import { Injectable } from '@nestjs/common';
import { Postgres } from '../infra/postgres/postgres.js';
import { microsecondsAsTime } from './entry-cursor.js';
import { needsRange, page, rangeEnd, type EntryFilter, type EntryKey } from './find-entries.js';

/** One change. */
export interface Entry {
  key: EntryKey;
  at: Date;
  /** Null: Heraut itself. So are the address and the id of the request. */
  client: string | null;
  /** How the user of this name had signed in; null: it is an application, or Heraut itself. */
  via: string | null;
  address: string | null;
  requestId: string | null;
  action: string;
  subject: string;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  changedSecrets: string[];
}

export interface EntryPage {
  entries: Entry[];
  /** Where the list goes on; undefined at its end. */
  next: EntryKey | undefined;
}

interface KeyRow {
  at_us: string;
  nr: string;
}

interface EntryRow extends KeyRow {
  at: Date;
  client: string | null;
  via: string | null;
  address: string | null;
  request_id: string | null;
  action: string;
  subject: string;
  before: Entry['before'];
  after: Entry['after'];
  changed_secrets: string[];
  /** Entries that were found, whether they fitted in the page or not. */
  found: number;
}

/** Reads the audit log for people. */
@Injectable()
export class EntryReader {
  constructor(private readonly postgres: Postgres) {}

  /**
   * Newest first. A page may be short, or empty, although `next` says that the list goes on: then a limited range was
   * searched, which contained no more of them, or they are large.
   * @param rangeRows entries that one call searches where no index serves the whole filter
   */
  async list(filter: EntryFilter, limit: number, rangeRows = 10_000): Promise<EntryPage> {
    const end = needsRange(filter) ? await this.endOfRange(filter, rangeRows) : undefined;
    const rows = await this.postgres.queryAside<EntryRow>(...page(filter, limit, end));
    const entries = rows.map(toEntry);
    const isMore = rows.length > 0 && rows[0]!.found > rows.length;
    return { entries, next: isMore ? entries.at(-1)?.key : end };
  }

  private async endOfRange(filter: EntryFilter, rangeRows: number): Promise<EntryKey | undefined> {
    const [row] = await this.postgres.queryAside<KeyRow>(...rangeEnd(filter, rangeRows));
    return row && keyOf(row);
  }
}

const keyOf = ({ at_us, nr }: KeyRow): EntryKey => ({ at: microsecondsAsTime(BigInt(at_us)), nr });

const toEntry = (row: EntryRow): Entry => ({
  key: keyOf(row),
  at: row.at,
  client: row.client,
  via: row.via,
  address: row.address,
  requestId: row.request_id,
  action: row.action,
  subject: row.subject,
  before: row.before,
  after: row.after,
  changedSecrets: row.changed_secrets,
});
