import type { KeyObject } from 'node:crypto';

/** A credential pair and its permissions, as every process keeps them in memory. */
export interface Application {
  readonly id: string;
  readonly clientId: string;
  /**
   * For HS256; none where the secret is empty: then every token is refused. Given a text, the library makes a key for
   * each token: 260 µs.
   */
  readonly key: KeyObject | undefined;
  /** Whether this process cannot check its tokens: its secret cannot be decrypted here. Left out, as a rule. */
  readonly isUnreadable?: boolean;
  readonly scopes: ReadonlySet<string>;
  /** Passes every scope check and may use the admin API. */
  readonly isSuperuser: boolean;
  /** Mail address at which the owner of its subscriptions is told of trouble with them; null: none. */
  readonly alertEmail: string | null;
}

/** Row and column of its secret, which are bound to it when it is encrypted. */
export const secretPlace = (id: string): string => `application.secret/${id}`;
