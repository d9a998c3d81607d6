import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { AdminApi } from './admin-api.js';
import type { ApiAnswer } from './api.js';
import { insertDeliveries, insertNotifications } from './insert-deliveries.js';
import { lastPart } from './last-part.js';
import { Receiver } from './receiver.js';
import { signToken } from './tokens.js';

/** A request that changes something. */
export interface Call {
  method: string;
  /** Of the whole server. */
  path: string;
  body?: object;
  /** Of the entry that it leaves. */
  action: string;
  subject: string;
  before: object | null;
  after: object | null;
  changedSecrets?: string[];
}

/** By the id of the operation: makes ready for its call. */
export type Calls = Record<string, () => Promise<Call>>;

/** Of the log, as the admin API shows it. */
export interface Entry {
  id: string;
  at: string;
  by: string;
  client: string | null;
  via: string | null;
  address: string | null;
  requestId: string | null;
  action: string;
  subject: string;
  before: object | null;
  after: object | null;
  changedSecrets: string[];
}

export const inNrc = (path: string) => `/api/v1${path}`;

/**
 * A process whose configuration an operator changes, with a receiver for its subscriptions. Nothing is delivered: what
 * a test puts into the ledger stays as it is. Its functions may be taken from it before `open`.
 */
export class AuditScene {
  admin!: AdminApi;
  receiver!: Receiver;
  /** Makes each call. */
  readonly operator = { clientId: `operator-${randomUUID()}`, secret: randomUUID() };
  /** Known to nobody else: none of them may be found in the log. */
  readonly secrets = { application: `secret-${randomUUID()}`, auth: `Bearer ${randomUUID()}`, other: randomUUID() };

  async open(): Promise<AdminApi> {
    [this.admin, this.receiver] = await Promise.all([
      AdminApi.start({ ROLES: 'api', TEST_CALLBACK_AUTH: 'false' }),
      Receiver.start(),
    ]);
    await this.admin.post('/admin/v1/applications', { ...this.operator, label: 'Operator', isSuperuser: true });
    return this.admin;
  }

  async close(): Promise<void> {
    await Promise.all([this.admin.close(), this.receiver.stop()]);
  }

  sql = <R>(text: string, values: unknown[] = []): Promise<R[]> =>
    this.admin.api.app.get(Postgres).dataSource.query(text, values);

  send = ({ method, path, body }: Call, headers: Record<string, string> = {}): Promise<ApiAnswer> =>
    this.admin.api.call(method, this.admin.api.origin + path, { body, token: signToken(this.operator), headers });

  newest = async (query = ''): Promise<Entry[]> => {
    const { json } = await this.admin.get(`/admin/v1/audit?limit=500${query}`);
    return json.entries as Entry[];
  };

  lastId = async (): Promise<number> => Number((await this.newest())[0]?.id ?? 0);

  /** Every row of every table but those of the log and of what passes by itself. */
  everything = async (): Promise<string[]> => {
    const tables = await this.sql<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition
         AND relnamespace = 'public'::regnamespace AND relname <> ALL ($1) ORDER BY 1`,
      [['audit_entry', 'process', 'lane_progress', 'alert', 'alert_round', 'activity']],
    );
    const rows = await Promise.all(
      tables.map(({ name }) =>
        this.sql<{ row: string }>(`SELECT '${name}: ' || t::text AS row FROM ${name} t ORDER BY 1`),
      ),
    );
    return rows.flat().map(({ row }) => row);
  };

  /** @returns its id */
  application = async (): Promise<string> => {
    const body = { clientId: randomUUID(), label: 'Before', secret: this.secrets.application };
    return (await this.admin.post('/admin/v1/applications', body)).json.id;
  };

  channel = async (): Promise<{ id: string; name: string }> => {
    const name = randomUUID();
    const { json } = await this.admin.api.post('/kanaal', { naam: name, filters: ['kind'] });
    return { id: lastPart(json.url), name };
  };

  abonnement = (naam: string, more: object = {}) => ({
    callbackUrl: this.receiver.url,
    auth: this.secrets.auth,
    kanalen: [{ naam, filters: {} }],
    ...more,
  });

  /** After these commands. */
  subscription = async (...commands: string[]): Promise<{ id: string; channel: string }> => {
    const { name } = await this.channel();
    const { json } = await this.admin.api.post('/abonnement', this.abonnement(name));
    const id = lastPart(json.url);
    for (const command of commands) await this.admin.post(`/admin/v1/subscriptions/${id}/${command}`);
    return { id, channel: name };
  };

  /** @returns its key, as paths have it */
  delivery = async (state: 'waiting' | 'failed' | 'held', subscriptionId: string = randomUUID()): Promise<string> => {
    const id = uuidv7();
    await insertNotifications(this.sql, [id]);
    const columns: Record<string, string> = state === 'held' ? { held_for: "'paused'" } : {};
    await insertDeliveries(this.sql, { notifications: [id], subscriptionIds: [subscriptionId], state, columns });
    return `${id}/${subscriptionId}`;
  };
}
