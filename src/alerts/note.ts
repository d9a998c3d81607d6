import type { Finding } from './alert.js';

export type NewsKind = 'opened' | 'still-open' | 'resolved';
export type Audience = 'operator' | 'owner';
export type NoteChannel = 'webhook' | 'mail';

/** The part of a note about one alert. Times are ISO 8601, as it is stored. */
export type News = {
  kind: NewsKind;
  alertId: string;
  since: string;
  openedAt: string;
  resolvedAt: string | null;
} & Pick<Finding, 'rule' | 'subject' | 'details'>;

/** News that is sent to one recipient together. */
export interface NoteContent {
  /** `test`: nothing has happened, somebody asked for a note. */
  kind: 'alerts' | 'test';
  audience: Audience;
  /** At most `mostNews`; a test has none. */
  news: News[];
  /** Further alerts that no room was left for. */
  more: number;
  /** All that it is about, with these; a test has none, nor has one that a version before wrote. */
  alertIds?: string[];
}

/** More alerts are counted, not described. */
export const mostNews = 100;

export interface Recipient {
  channel: NoteChannel;
  /** A mail address; of the webhook empty. */
  address: string;
}

export interface NoteToSend extends Recipient {
  /** A UUID. */
  id: string;
  content: NoteContent;
}

/** `channel`: no note can be sent by it now. `recipient-…`: others can be; it was not accepted for now, or for good. */
export type SendFailure = 'channel' | 'recipient-deferred' | 'recipient-refused';

/** The result of one try to send a note. `reason`: for operators; it holds no secret. */
export type SendResult = { isSent: true } | { isSent: false; reason: string; failure: SendFailure };
