/** A channel, as every process keeps it in memory. */
export interface Channel {
  readonly id: string;
  readonly name: string;
  readonly documentationLink: string;
  /** The names that can be filtered on, as they were registered. */
  readonly filters: readonly string[];
  /** The same names in the form that is compared (filter-names.ts). */
  readonly canonicalFilters: ReadonlySet<string>;
  /** Null: no two notifications are ever the same. */
  readonly deduplication: Deduplication | null;
  /** Seconds after its creation that a notification is not sent any more; null: it always is. */
  readonly maxAgeSeconds: number | null;
  /** Days that the bodies of its notifications are kept; null: as BODY_RETENTION_DAYS says. */
  readonly bodyRetentionDays: number | null;
}

/** Which notifications of a channel are the same: business knowledge, so only an operator sets it. */
export interface Deduplication {
  /** `hoofdObject`, `resource`, `resourceUrl`, `actie` or `kenmerken.<name>`; all of them must be equal. */
  readonly fields: readonly string[];
  /** Seconds after the first during which another counts as the same. */
  readonly withinSeconds: number;
}
