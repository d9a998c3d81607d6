/** A publication that was found valid. */
export interface Publication {
  channel: string;
  /** What subscriptions filter on, by canonical name. */
  characteristics: ReadonlyMap<string, string>;
  /** The exact text every receiver gets. */
  body: string;
  /** Client id. */
  publisher: string;
  /** Only for what is not simply to be sent, now and in any case. */
  terms?: Terms;
}

export interface Terms {
  /** Under this key the publisher's request happens once. */
  request?: RequestKey;
  /** Under this key the channel's content is published once. */
  content?: ContentKey;
  /** Milliseconds since 1970; not sent earlier. */
  notBefore?: number;
  /** Milliseconds since 1970; not sent any more from then on. */
  expiresAt?: number;
}

export interface RequestKey {
  operation: 'publish' | 'put';
  key: string;
  /** Tells whether a repeated request is the same. */
  requestHash: string;
  keepSeconds: number;
}

export interface ContentKey {
  key: string;
  keepSeconds: number;
}

export type Published =
  | { kind: 'accepted'; id: string }
  /** The request was made before; `id` is what came of it then: its own notification, or that of which it was a duplicate. */
  | { kind: 'replayed'; id: string; isDuplicate: boolean }
  /** The channel has seen the same content before, as notification `id`; this one is not sent. */
  | { kind: 'duplicate'; id: string }
  /** The key was used before, for another request. */
  | { kind: 'mismatch'; id: string };
