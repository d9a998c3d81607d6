import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { AlertChannels } from '../../src/alerts/alert-channels.js';
import { AlertLoop } from '../../src/alerts/alert-loop.service.js';
import { NoteSender } from '../../src/alerts/note-sender.service.js';
import { AlertRounds } from '../../src/alerts/rounds.service.js';
import { ApplicationDirectory } from '../../src/auth/application-directory.service.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { Config } from '../../src/config/config.module.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { AdminApi } from './admin-api.js';
import { insertDeliveries, insertNotifications } from './insert-deliveries.js';
import { insertSubscription } from './insert-subscription.js';
import { Mailbox } from './mailbox.js';
import { answer, Receiver } from './receiver.js';

/** The two operators who get mail. */
export const operator = 'ops@example.org';
export const second = 'second@example.org';
/** A receiver may repeat what it was sent. */
export const answered = `burgerservicenummer-${randomUUID()}`;
/** The signal of a process that does not stop. */
export const running = new AbortController().signal;

/** By every channel; @returns how many were sent */
export async function sendAll(sender: NoteSender): Promise<number> {
  const sent = await Promise.all(sender.channelNames.map((channel) => sender.sendDue(channel, running)));
  return sent.reduce((sum, each) => sum + each, 0);
}

/** An alert, as the admin API shows it. */
export interface Shown {
  id: string;
  rule: string;
  subject: string;
  openedAt: string;
  resolvedAt: string | null;
  toldAt: string | null;
  what: string;
  runbook: string;
}

interface Parts {
  mailbox: Mailbox;
  webhook: Receiver;
  admin: AdminApi;
  rounds: AlertRounds;
  sender: NoteSender;
  postgres: Postgres;
  /** Of all subscriptions. */
  channel: string;
  /** Of the webhook. */
  secret: string;
}

/**
 * A process that tells two operators and a webhook of alerts; its rounds are made, and its notes sent, when a test says
 * so. Its functions may be taken from it before `open`.
 */
export class AlertScene {
  private parts!: Parts;

  async open(): Promise<Parts> {
    const secret = `whsec_${Buffer.from(randomUUID()).toString('base64')}`;
    const password = `p-${randomUUID()}`;
    const [mailbox, webhook] = await Promise.all([Mailbox.start({ users: { heraut: password } }), Receiver.start()]);
    const admin = await AdminApi.start({
      TEST_CALLBACK_AUTH: 'false',
      EMAIL_HOST: '127.0.0.1',
      EMAIL_PORT: String(mailbox.port),
      EMAIL_USE_TLS: 'false',
      EMAIL_HOST_USER: 'heraut',
      EMAIL_HOST_PASSWORD: password,
      DEFAULT_FROM_EMAIL: 'heraut@example.org',
      ALERT_MAIL_TO: `${operator}, ${second}`,
      ALERT_WEBHOOK_URL: webhook.url,
      ALERT_WEBHOOK_SECRET: secret,
      // The alerts' own webhook is on this machine, where callbacks may not lead.
      CALLBACK_NETWORKS: 'public',
    });
    const { app } = admin.api;
    const loop = app.get(AlertLoop);
    loop.onModuleDestroy();
    await loop.beforeApplicationShutdown();
    const channel = randomUUID();
    await admin.api.post('/kanaal', { naam: channel });
    const [rounds, sender, postgres] = [app.get(AlertRounds), app.get(NoteSender), app.get(Postgres)];
    return (this.parts = { mailbox, webhook, admin, rounds, sender, postgres, channel, secret });
  }

  /** Of all that the test before left behind. */
  async clear(): Promise<void> {
    const { admin, mailbox, webhook } = this.parts;
    await admin.put('/admin/v1/alert-rules', { groupSeconds: 0 });
    await this.sql('DELETE FROM delivery');
    await this.sql('DELETE FROM endpoint');
    await this.sql(
      `WITH change AS (UPDATE catalogue SET version = version + 1 RETURNING version)
       UPDATE subscription SET deleted_at = now(), version = change.version FROM change`,
    );
    await admin.get('/admin/v1/subscriptions');
    mailbox.refused.clear();
    webhook.always(answer(204));
    await this.sql('DELETE FROM alert');
    await this.sql('DELETE FROM alert_note');
    mailbox.received.length = 0;
    webhook.requests.length = 0;
  }

  async close(): Promise<void> {
    const { admin, mailbox, webhook } = this.parts;
    await admin.close();
    await Promise.all([mailbox.stop(), webhook.stop()]);
  }

  get settings(): Config['settings'] {
    return this.parts.admin.api.app.get(Config).settings;
  }

  /** Those of another process, which tells by these channels. */
  roundsBy = (channels: AlertChannels): AlertRounds => {
    const { app } = this.parts.admin.api;
    return new AlertRounds(
      this.parts.postgres,
      app.get(Config),
      channels,
      app.get(SubscriptionDirectory),
      app.get(ApplicationDirectory),
      app.get(Catalogue),
      app.get(LedgerClock),
    );
  };

  sql = <R>(text: string, values: unknown[] = []): Promise<R[]> => this.parts.postgres.dataSource.query(text, values);

  roundAndSend = async (): Promise<void> => {
    if (!(await this.parts.rounds.run(0))) throw new Error('No round was made.');
    await sendAll(this.parts.sender);
  };

  /** Its receiver is never called. */
  subscription = async (parts: { alertEmail?: string; owner?: string } = {}): Promise<string> => {
    const id = await this.newSubscription(parts);
    await this.parts.admin.get('/admin/v1/subscriptions'); // all is in memory
    return id;
  };

  /** As another process commits it: this one may not know it yet. */
  newSubscription = ({ alertEmail = null as string | null, owner = 'portal' } = {}): Promise<string> =>
    insertSubscription(this.sql, {
      owner_client_id: owner,
      callback_url: 'https://receiver.example/hook?key=hidden',
      auth: 'Bearer x',
      channels: JSON.stringify([{ channel: this.parts.channel, filters: {} }]),
      alert_email: alertEmail,
    });

  /** That many dead letters of each. */
  die = async (subscriptionIds: string[], count = 1): Promise<void> => {
    const ids = Array.from({ length: count }, () => uuidv7());
    await insertNotifications(this.sql, ids, { channel: this.parts.channel });
    await insertDeliveries(this.sql, {
      notifications: ids,
      subscriptionIds,
      state: 'failed',
      columns: { last_status: '503', last_error: `'HTTP 503: ${answered}'`, ended_at: 'now()' },
    });
  };

  list = async (query = ''): Promise<Shown[]> =>
    (await this.parts.admin.get(`/admin/v1/alerts${query}`)).json.alerts as Shown[];
}
