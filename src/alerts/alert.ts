import type { RuleName } from './alert-rules.js';

interface OfSubscription {
  subscriptionId: string;
  owner: string;
  receiver: string;
}

interface Waiting extends OfSubscription {
  /**
   * Deliveries that wait for another try, or for their first call; at most `mostCounted`, which means: at least as
   * many.
   */
  count: number;
  reason: string | null;
}

/**
 * Details of the trouble, by rule. They are stored, shown to operators, and sent: nothing in them is secret. Times are
 * ISO 8601. A callback URL may hold a key, so only its origin (`receiver`) is here.
 */
export interface DetailsOf {
  'dead-letters': OfSubscription & {
    /** At most `mostCounted`, which means: at least as many. */
    count: number;
    /** Of those that were counted. */
    newestNotificationId: string;
    reason: string | null;
  };
  'oldest-due': { notificationId: string; subscriptionId: string; state: 'waiting' | 'queued' };
  'endpoint-open': { receiver: string; reason: string | null; failures: number };
  'backlog-growing': { count: number; isMore: boolean };
  'role-missing': { role: string };
  'ledger-disk': { bytes: number; maxBytes: number };
  'subscription-failing': Waiting;
  'calls-not-made': Waiting;
  'subscription-disabled': OfSubscription;
}

/** A trouble that a rule found. */
export type Finding = {
  [Rule in RuleName]: {
    rule: Rule;
    /** Kind and id: `subscription/<uuid>`. */
    subject: string;
    /** When it began, as far as is known. */
    since: Date;
    details: DetailsOf[Rule];
  };
}[RuleName];

/** A finding that was opened as an alert. */
export type Alert = Finding & {
  id: string;
  openedAt: Date;
  /** Null: it is open. */
  resolvedAt: Date | null;
  /**
   * When somebody was last told of this rule and subject, by this alert or the one before it; null: never, or it is
   * news all the same.
   */
  lastToldAt: Date | null;
  /** Whether somebody was told of this one. */
  isTold: boolean;
};

/** With who was told of it. */
export type StoredAlert = Alert & {
  /** Mail addresses of owners that were told of it. */
  told: readonly string[];
};

/** The same for findings that are one trouble to a rule. */
export const keyOf = ({ rule, subject }: Pick<Finding, 'rule' | 'subject'>): string => `${rule} ${subject}`;
