import { randomUUID } from 'node:crypto';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { AdminApi, type AdminBody } from './admin-api.js';
import { eventually } from './eventually.js';
import { lastPart } from './last-part.js';
import { notificatie } from './notificatie.js';
import { Receiver } from './receiver.js';
import type { PreparedStack, Stack } from './stacks.js';

/** The object of each notification, unless a test says another. */
export const url = 'https://api.example.org/resources/1';

export const notificationOn = (channel: string) =>
  notificatie(channel, {
    hoofdObject: url,
    resource: 'resource',
    resourceUrl: url,
    // Not now: the server's clock may be a little behind.
    aanmaakdatum: new Date(Date.now() - 1000).toISOString(),
    kenmerken: { object_type: 'a' },
  });

export type Page = Pick<AdminBody, 'deliveries' | 'nextCursor'>;

/** Of one test. */
interface Subscribed {
  receiver: Receiver;
  channel: string;
  subscriptionId: string;
}

/**
 * A process that delivers on this stack, and for each test a channel with a subscription of a receiver. Its functions
 * may be taken from it before `open`.
 */
export class DeliveryScene {
  private prepared!: PreparedStack;
  private admin!: AdminApi;
  private subscribed!: Subscribed;

  constructor(private readonly stack: Stack) {}

  async open(): Promise<AdminApi> {
    this.prepared = await this.stack.prepare();
    // An empty value counts as not set: the embedded stack has no database server.
    return (this.admin = await AdminApi.start({
      DATABASE_URL: '',
      DISPATCH_INTERVAL_MS: '100',
      DATABASE_TIMEOUT: '5', // a replay of everything for a subscription waits for its horizon
      ...this.prepared.settings,
    }));
  }

  /** For each test. */
  async begin(): Promise<Subscribed> {
    const [receiver, channel] = [await Receiver.start(), `channel-${randomUUID()}`];
    await this.admin.api.post('/kanaal', { naam: channel, documentatieLink: 'https://docs.example.org/', filters: [] });
    this.subscribed = { receiver, channel, subscriptionId: '' };
    this.subscribed.subscriptionId = await this.subscribe();
    return this.subscribed;
  }

  async end(): Promise<void> {
    await this.subscribed.receiver.stop();
  }

  async close(): Promise<void> {
    await this.admin.close();
    await this.prepared.release();
  }

  sql = (text: string, values?: unknown[]): Promise<unknown[]> =>
    this.admin.api.app.get(Postgres).dataSource.query<unknown[]>(text, values);

  /** One more to the channel of the test. */
  subscribe = async (callbackUrl = this.subscribed.receiver.url): Promise<string> => {
    const { json } = await this.admin.api.post('/abonnement', {
      callbackUrl,
      auth: 'Bearer receiver',
      kanalen: [{ naam: this.subscribed.channel, filters: {} }],
    });
    return lastPart(json.url);
  };

  /** @returns the id of the notification */
  publish = async (fields: object = {}): Promise<string> => {
    const body = { ...notificationOn(this.subscribed.channel), ...fields };
    const { status, headers, text } = await this.admin.api.post('/notificaties', body);
    if (status !== 201) throw new Error(`Answered ${status} instead of 201: ${text}`);
    return headers.get('notification-id')!;
  };

  /** Of its delivery to the subscription of the test. */
  pathOf = (notificationId: string): string =>
    `/admin/v1/deliveries/${notificationId}/${this.subscribed.subscriptionId}`;

  becomes = (notificationId: string, state: string): Promise<AdminBody> =>
    eventually(async () => {
      const { json } = await this.admin.get(this.pathOf(notificationId));
      return json.state === state ? json : undefined;
    }, `the delivery to be ${state}`);

  list = async (query: Record<string, string>): Promise<Page> =>
    (await this.admin.get(`/admin/v1/deliveries?${new URLSearchParams(query).toString()}`)).json;
}
