/** What may be published, as every process holds it in memory. */
export interface Channel {
  readonly id: string;
  readonly name: string;
  readonly documentationLink: string;
  /** The names that can be filtered on, as they were registered. */
  readonly filters: readonly string[];
  /** The same names in the form that is compared (filter-names.ts). */
  readonly canonicalFilters: ReadonlySet<string>;
}
