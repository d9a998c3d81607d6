import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { AuditLog } from '../audit/audit-log.js';
import { Config } from '../config/config.module.js';
import { Authorizations } from '../credentials/authorizations.service.js';
import { postAuthorized } from '../delivery/authorized-call.js';
import { HttpWebhookClient } from '../delivery/webhook-client.http.js';
import type { WebhookResponse } from '../delivery/webhook-client.js';
import { IdempotencyStore } from '../idempotency/idempotency-store.js';
import { ConflictProblem, UnavailableProblem } from '../infra/http/problem.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { userAgent } from '../infra/user-agent.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { Outbound } from '../outbound/outbound.service.js';
import { callTimeoutMs } from '../subscriptions/call-timeout.js';
import { proofBody } from '../subscriptions/proof-body.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { testCallToShow } from './test-call-output.js';

/** Beyond the time of the call itself: for whoever notes it, and for a process that stands still. */
const lockMarginMs = 10_000;

/**
 * Calls receivers so that an operator sees the answer. Everything is as with a delivery, but for what comes of it:
 * nothing is in the ledger, and nothing counts for the endpoint; one that says 410 disables no subscription.
 */
@Injectable()
export class TestCalls implements OnModuleDestroy {
  private calls = 0;
  /** Not the worker's, which waits for its own calls before it stops. Made with the first test. */
  private webhooks: HttpWebhookClient | undefined;

  constructor(
    private readonly outbound: Outbound,
    private readonly authorizations: Authorizations,
    private readonly locks: IdempotencyStore,
    private readonly heartbeat: Heartbeat,
    private readonly ledgerClock: LedgerClock,
    private readonly postgres: Postgres,
    private readonly config: Config,
  ) {}

  async onModuleDestroy(): Promise<void> {
    this.webhooks?.abandonAll();
    await this.webhooks?.close();
  }

  /**
   * Noted in the audit log before it is made.
   * @throws {ConflictProblem} while another one of this subscription is made, by whatever process
   * @throws {UnavailableProblem} when this process stops meanwhile
   */
  async make(subscription: Subscription): Promise<ReturnType<typeof testCallToShow>> {
    const timeoutMs = callTimeoutMs(subscription, this.config.settings);
    const key = `test-call/${subscription.id}`;
    const token = `${this.heartbeat.processId}/test-${++this.calls}`;
    const lock = { key, token, ttlMs: timeoutMs + lockMarginMs, requestHash: null, mayTakeOver: true };
    if ((await this.locks.acquire(lock)).kind !== 'acquired') throw underWay();
    try {
      const noted = {
        action: 'subscription.tested',
        subject: `subscription/${subscription.id}`,
        before: {},
        after: {},
      };
      await this.postgres.dataSource.transaction((manager) => AuditLog.note(manager, noted));
      return await this.call(subscription, timeoutMs);
    } finally {
      await this.locks.release(key, token);
    }
  }

  private async call(subscription: Subscription, timeoutMs: number): Promise<ReturnType<typeof testCallToShow>> {
    this.webhooks ??= new HttpWebhookClient(this.outbound, () => this.ledgerClock.now());
    const webhookId = randomUUID();
    const at = this.ledgerClock.now();
    const request = {
      url: subscription.callbackUrl,
      headers: {
        'content-type': 'application/json',
        accept: '*/*',
        'user-agent': userAgent,
        'webhook-id': webhookId,
      },
      body: Buffer.from(proofBody),
      timeoutMs,
      mayRepeat: false,
      keepsAnswer: true,
    };
    const response: WebhookResponse = await postAuthorized(
      this.webhooks,
      this.authorizations,
      subscription,
      request,
      at,
    );
    if (response.kind === 'abandoned') throw new UnavailableProblem('This server is stopping.', 1);
    const isSigned = subscription.signingKeys.some((key) => key.signsAt(at));
    return testCallToShow({ at, timeoutMs, webhookId, isSigned, response });
  }
}

const underWay = () =>
  new ConflictProblem('test-call-under-way', 'Another test of this subscription is under way; wait for its end.');
