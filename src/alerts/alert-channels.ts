import type { Settings } from '../config/settings.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import { AlertWebhook } from './alert-webhook.node-http.js';
import { Mailer } from './mailer.nodemailer.js';
import type { NoteChannel, NoteToSend, Recipient, SendResult } from './note.js';

/** The ways by which this process can tell somebody, as the settings say. */
export class AlertChannels {
  readonly names: readonly NoteChannel[];
  /** They get every alert. */
  readonly operators: readonly Recipient[];
  private readonly webhook: AlertWebhook | undefined;
  private readonly mailer: Mailer | undefined;

  constructor(
    settings: Settings,
    private readonly ledgerClock: LedgerClock,
  ) {
    this.webhook = settings.ALERT_WEBHOOK_URL === undefined ? undefined : new AlertWebhook(settings);
    this.mailer = settings.EMAIL_HOST === undefined ? undefined : new Mailer(settings);
    this.names = [...(this.webhook ? (['webhook'] as const) : []), ...(this.mailer ? (['mail'] as const) : [])];
    this.operators = [
      ...(this.webhook ? [{ channel: 'webhook' as const, address: '' }] : []),
      ...[...new Set(settings.ALERT_MAIL_TO)].map((address) => ({ channel: 'mail' as const, address })),
    ];
  }

  /** Never rejects. */
  async send(note: NoteToSend, stopping: AbortSignal): Promise<SendResult> {
    const way = note.channel === 'webhook' ? this.webhook : this.mailer;
    return (
      (await way?.send(note, this.ledgerClock.now(), stopping)) ?? {
        isSent: false,
        reason: 'not configured',
        failure: 'recipient-refused',
      }
    );
  }
}
