import { randomUUID } from 'node:crypto';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { AdminApi, type AdminAnswer, type AdminBody } from './admin-api.js';
import { eventually } from './eventually.js';
import { lastPart } from './last-part.js';
import { notificatie } from './notificatie.js';
import { Receiver, type ReceivedRequest } from './receiver.js';
import { signToken } from './tokens.js';

export const path = '/admin/v1/subscriptions';

/** For calls that nobody answers. All others have more, so that they are answered in time on a busy machine. */
export const brief = { timeoutSeconds: 3 };

export const codesOf = ({ json }: AdminAnswer): string[] =>
  json.invalidParams.map(({ name, code }) => `${name} ${code}`);

export interface Subscribed {
  id: string;
  /** Of its channel. */
  naam: string;
}

/**
 * A process with subscriptions of a receiver. Subscriptions of the superuser are at-least-once, and so are those of an
 * application `listed`. Its functions may be taken from it before `open`.
 */
export class SubscriptionScene {
  private admin!: AdminApi;
  private receiver!: Receiver;

  async open(): Promise<AdminApi> {
    return (this.admin = await AdminApi.start({ AT_LEAST_ONCE_SENDING_CUSTOMERS: 'superuser,listed' }));
  }

  /**
   * For each test: what was published in the one before may be tried again, and would get the answer that is meant for
   * another call.
   */
  async newReceiver(): Promise<Receiver> {
    return (this.receiver = await Receiver.start());
  }

  async close(): Promise<void> {
    await this.admin.close();
  }

  sql = <R>(text: string, values: unknown[] = []): Promise<R[]> =>
    this.admin.api.app.get(Postgres).dataSource.query<R[]>(text, values);

  /** To a channel of its own. */
  subscribe = async (more: object = {}, token?: string): Promise<Subscribed> => {
    const naam = randomUUID();
    await this.admin.api.post('/kanaal', { naam, filters: ['kind'] });
    const kanalen = [{ naam, filters: { kind: 'permit' } }];
    const body = { callbackUrl: this.receiver.url, auth: 'Bearer secret-of-the-receiver', kanalen, ...more };
    const { json } = await this.admin.api.post('/abonnement', body, { token });
    return { id: lastPart(json.url), naam };
  };

  /** @returns a token of it */
  newOwner = async (clientId: string): Promise<string> => {
    const scopes = ['notificaties.consumeren'];
    const { json } = await this.admin.post('/admin/v1/applications', { clientId, label: clientId, scopes });
    return signToken({ clientId, secret: json.secret });
  };

  /** @returns the id of the notification */
  publish = async ({ naam }: Pick<Subscribed, 'naam'>, kenmerken = {}): Promise<string> => {
    const { status, headers, text } = await this.admin.api.post('/notificaties', notificatie(naam, { kenmerken }));
    if (status !== 201) throw new Error(`Answered ${status} instead of 201: ${text}`);
    return headers.get('notification-id')!;
  };

  deliveriesOf = async (id: string): Promise<AdminBody['deliveries']> =>
    (await this.admin.get(`/admin/v1/deliveries?notification=${id}`)).json.deliveries;

  /** All of these, to which one subscription each fits. */
  become = async (ids: string[], state: string): Promise<void> => {
    await Promise.all(ids.map((id) => this.becomes(id, state)));
  };

  becomes = (id: string, state: string): Promise<true> =>
    eventually(async () => (await this.deliveriesOf(id))[0]?.state === state, `${id} to be ${state}`);

  receivedOf = (id: string): ReceivedRequest[] =>
    this.receiver.notifications.filter(({ headers }) => headers['webhook-id'] === id);
}
