/** A credential pair and what it may do, as every process holds it in memory. */
export interface Application {
  readonly id: string;
  readonly clientId: string;
  readonly label: string;
  /** HS256 key. */
  readonly secret: string;
  readonly scopes: ReadonlySet<string>;
  /** Passes every scope check and may use the admin API. */
  readonly isSuperuser: boolean;
}
