import type { PermissionProblem, ThrottledProblem, UnavailableProblem } from '../infra/http/problem.js';
import type { OnceKey } from '../ledger/once-key.js';
import type { PublicationTrace } from './publication-trace.js';

/** A publication that was found valid. */
export interface Publication {
  channel: string;
  /** The values that subscriptions filter on, by canonical name. */
  characteristics: ReadonlyMap<string, string>;
  /** Its subject: a subscription may keep the order of notifications about one. */
  hoofdObject: string;
  /** The exact text every receiver gets. */
  body: string;
  /** Client id. */
  publisher: string;
  /** Why the publisher may not publish it by the catalogue that is in memory now; undefined: it may. */
  refusalNow: () => PermissionProblem | ThrottledProblem | UnavailableProblem | undefined;
  terms: Terms;
  /**
   * The same by the rules that its channel has now, which may have changed since it was read; undefined: no rules count
   * for it.
   * @throws {ValidationProblem} where the channel was removed since
   */
  termsNow?: () => Terms;
  trace: PublicationTrace;
}

/** A publication whose request has a key. */
export interface RequestedPublication extends Publication {
  terms: Terms & { request: OnceKey };
}

/** The conditions on sending it. All null: it is sent at once, in any case. */
export interface Terms {
  /** Under this key the publisher's request is carried out once. */
  request: OnceKey | null;
  /** Under this key the channel's content is published once. */
  content: OnceKey | null;
  /** Milliseconds since 1970; not sent earlier. */
  notBefore: number | null;
  /**
   * Where it is not sent at once and order is kept: whether later ones about the same object wait for it. Not where its
   * publisher asked for that time, so that others come first.
   */
  keepsPlace: boolean;
  /** Milliseconds since 1970; not sent any more from then on. */
  expiresAt: number | null;
}

export type Published =
  /** `deliveries`: how many there are, none sent where it `isTooOld`: older than its channel allows. */
  | { kind: 'accepted'; id: string; deliveries: number; isTooOld: boolean }
  /** The request was made before; `id` is its notification of then, or the one of which it was a duplicate. */
  | { kind: 'replayed'; id: string; isDuplicate: boolean }
  /** The channel has seen the same content before, as notification `id`; this one is not sent. */
  | { kind: 'duplicate'; id: string }
  /** The key was used before, for another request. */
  | { kind: 'mismatch'; id: string };
