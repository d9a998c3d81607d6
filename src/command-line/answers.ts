/** The fields of answers of the admin API that the command line draws. Its documents at /docs have all of them. */

export interface Delivery {
  notificationId: string;
  subscriptionId: string;
  channel: string;
  acceptedAt: string;
  state: string;
  attemptCount: number;
  failureCount: number;
  replayCount: number;
  nextAttemptAt: string | null;
  heldFor: string | null;
  lastStatus: number | null;
  lastError: string | null;
  endedAt: string | null;
}

export interface Attempt {
  number: number;
  startedAt: string;
  durationMs: number;
  status: number | null;
  error: string | null;
  address: string | null;
  responseBody: string | null;
}

export interface DeliveryWithAttempts extends Delivery {
  attempts: Attempt[];
  live: { status: string; startedAt: string | null } | null;
}

export interface Channel {
  id: string;
  name: string;
  documentationLink: string;
  filters: string[];
  deduplication: { fields: string[]; withinSeconds: number } | null;
  maxAgeSeconds: number | null;
  bodyRetentionDays: number | null;
}

export interface Subscription {
  id: string;
  ownerClientId: string;
  callbackUrl: string;
  channels: { channel: string; filters: Record<string, string> }[];
  effectiveGuarantee: string;
  timeoutSeconds: number | null;
  maxConcurrency: number | null;
  ratePerSecond: number | null;
  ordering: string;
  disabledAt: string | null;
  pausedAt: string | null;
  credentials: { unreadable: string | null };
}

export interface SubscriptionWithHeld extends Subscription {
  held: { count: number; byReason: Record<string, number>; oldestAt: string | null; isDropping: boolean };
}

export interface OpenEndpoint {
  address: string;
  reason: string;
  openedAt: string;
  failureCount: number;
  probeCount: number;
  nextProbeAt: string;
  subscriptionCount: number;
}

export interface RetryPolicy {
  maxRetries: number;
  backoffFactor: number;
  baseFactor: number;
  maxDelaySeconds: number;
  jitter: number;
}

export interface RetryPolicyPreview {
  policy: RetryPolicy;
  attempts: {
    attempt: number;
    delaySeconds: number;
    delay: string;
    shortestDelaySeconds: number;
    longestDelaySeconds: number;
    elapsedSeconds: number;
    elapsed: string;
  }[];
}

export interface Health {
  status: 'ready' | 'degraded' | 'unavailable';
  parts: Record<string, { status: 'up' | 'down'; error?: string }>;
  down: string[];
}
