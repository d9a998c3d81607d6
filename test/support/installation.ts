import { randomUUID } from 'node:crypto';
import { eventually } from './eventually.js';
import { lastPart } from './last-part.js';
import { notificatie } from './notificatie.js';
import { HerautProcess, type Answer } from './spawn-heraut.js';
import type { PreparedStack } from './stacks.js';

/** Sped up, so that tests do not wait. */
const quick = { DISPATCH_INTERVAL_MS: '100', TEST_CALLBACK_AUTH: 'false' };

/** The fields of a delivery that tests read. */
export interface DeliveryBody {
  state: string;
  attemptCount: number;
  nextAttemptAt: string;
  lastStatus: number | null;
  lastError: string | null;
  attempts: { number: number; startedAt: string; status: number | null; error: string | null }[];
  live: { attempt: number; status: string; lastStatus: number | null; nextAttemptAt: string } | null;
}

export interface Published {
  /** Also the `webhook-id` of all its deliveries. */
  id: string;
  /** The body of the 201, byte for byte. */
  text: string;
}

export interface SubscribeOptions {
  channel: string;
  url: string;
  auth?: string;
  kanalen?: { naam: string; filters?: Record<string, string> }[];
  deliveryGuarantee?: 'at-least-once' | 'at-most-once';
  /** Of the application whose subscription it is; the superuser's when not given. */
  token?: string;
}

/** Every process of one stack, with the calls of publishers, subscribers and operators. */
export class Installation {
  readonly processes: HerautProcess[] = [];

  private constructor(private readonly settings: Record<string, string>) {}

  /**
   * The embedded default is one process; on real servers the roles have a process each, so that nothing passes through
   * memory.
   */
  static async start(prepared: PreparedStack, settings: Record<string, string> = {}): Promise<Installation> {
    const roles = prepared.settings.AMQP_URL ? ['api', 'worker,dispatcher'] : ['api,worker,dispatcher'];
    return Installation.startWith(prepared, roles, settings);
  }

  /** One process for each of `roles`. */
  static async startWith(
    prepared: PreparedStack,
    roles: string[],
    settings: Record<string, string> = {},
  ): Promise<Installation> {
    const installation = new Installation({ ...quick, ...prepared.settings, ...settings });
    // One after the other: `processes` has them in the order of `roles`.
    for (const each of roles) await installation.add(each);
    return installation;
  }

  /** One process more. It is live when it listens, but ready only when the other roles are alive too. */
  async add(roles: string): Promise<HerautProcess> {
    const added = await HerautProcess.start({ settings: { ...this.settings, ROLES: roles }, until: 'live' });
    this.processes.push(added);
    return added;
  }

  /** Without a chance to tidy up, as a test that is over does not need it. */
  async end(): Promise<void> {
    await Promise.all(this.processes.map((one) => one.kill9()));
  }

  /** The first process; it has the role `api`. */
  get api(): HerautProcess {
    return this.processes[0]!;
  }

  /** @returns its name */
  async createChannel(filters: string[] = []): Promise<string> {
    const naam = `channel-${randomUUID()}`;
    return expectStatus(201, await this.api.call('POST', '/api/v1/kanaal', { body: { naam, filters } }), () => naam);
  }

  /** @returns its id */
  async subscribe(
    { channel, url, auth = 'Bearer receiver', kanalen, deliveryGuarantee, token }: SubscribeOptions,
    via = this.api,
  ): Promise<string> {
    const body = { callbackUrl: url, auth, kanalen: kanalen ?? [{ naam: channel, filters: {} }], deliveryGuarantee };
    const answer = await via.call('POST', '/api/v1/abonnement', { body, token });
    return expectStatus(201, answer, () => lastPart((answer.body as { url: string }).url));
  }

  async unsubscribe(subscriptionId: string, via = this.api): Promise<void> {
    expectStatus(204, await via.call('DELETE', `/api/v1/abonnement/${subscriptionId}`), () => undefined);
  }

  /** Returns any answer: for tests in which it may be another than 201. */
  tryToPublish(channel: string, fields: Record<string, unknown> = {}, via = this.api): Promise<Answer> {
    return via.call('POST', '/api/v1/notificaties', { body: notificatie(channel, fields) });
  }

  async publish(channel: string, fields?: Record<string, unknown>, via = this.api): Promise<Published> {
    const answer = await this.tryToPublish(channel, fields, via);
    return expectStatus(201, answer, () => ({ id: answer.headers.get('notification-id')!, text: answer.text }));
  }

  /** Up to 16 at a time. */
  async publishMany(channel: string, count: number): Promise<Published[]> {
    const published: Published[] = [];
    let left = count;
    const publisher = async () => {
      while (left-- > 0) published.push(await this.publish(channel));
    };
    await Promise.all(Array.from({ length: 16 }, publisher));
    return published;
  }

  /** Seconds: `backoffFactor` × `baseFactor` ^ failures so far. */
  async setRetryPolicy(policy: { maxRetries: number; backoffFactor: number; baseFactor?: number }): Promise<void> {
    const body = { baseFactor: 1, ...policy };
    expectStatus(200, await this.api.call('PUT', '/admin/v1/retry-policy', { body }), () => undefined);
  }

  async delivery(notificationId: string, subscriptionId: string): Promise<DeliveryBody> {
    const answer = await this.api.call('GET', `/admin/v1/deliveries/${notificationId}/${subscriptionId}`);
    return expectStatus(200, answer, () => answer.body as DeliveryBody);
  }

  becomes(state: string, notificationId: string, subscriptionId: string): Promise<DeliveryBody> {
    return eventually(async () => {
      const delivery = await this.delivery(notificationId, subscriptionId);
      return delivery.state === state && delivery;
    }, `the delivery to be ${state}`);
  }

  /** An operator's command for one delivery. */
  async command(verb: 'retry' | 'cancel', notificationId: string, subscriptionId: string): Promise<void> {
    const answer = await this.api.call('POST', `/admin/v1/deliveries/${notificationId}/${subscriptionId}/${verb}`);
    expectStatus(verb === 'retry' ? 202 : 200, answer, () => undefined);
  }
}

function expectStatus<T>(status: number, answer: Answer, result: () => T): T {
  if (answer.status === status) return result();
  throw new Error(`Answered ${answer.status} instead of ${status}: ${answer.text}`);
}
