import type { KeyObject } from 'node:crypto';

/** A credential pair and what it may do, as every process holds it in memory. */
export interface Application {
  readonly id: string;
  readonly clientId: string;
  readonly label: string;
  /** For HS256; none where the secret is empty: then no token convinces. From a text a key would be made for every token, at 260 µs. */
  readonly key: KeyObject | undefined;
  readonly scopes: ReadonlySet<string>;
  /** Passes every scope check and may use the admin API. */
  readonly isSuperuser: boolean;
}
