import { Agent, request } from 'undici';
import type { Settings } from '../config/settings.js';
import { CallTime } from '../infra/call-time.js';
import { userAgent } from '../infra/user-agent.js';
import { Outbound } from '../outbound/outbound.service.js';
import { isSuccess } from '../outbound/success.js';
import { signatureHeaders } from '../signing/signature-headers.js';
import { SigningKey } from '../signing/signing-key.js';
import type { NoteToSend, SendResult } from './note.js';
import { webhookPayload } from './webhook-payload.js';

/** Posts notes to the operator's webhook, signed by Standard Webhooks. No redirect is followed. */
export class AlertWebhook {
  /** Of the whole call; less than the lease of a note. */
  protected readonly timeoutMs: number = 15_000;
  private readonly url: URL;
  /** undici leaves out what a URL has in front of its host. */
  private readonly authorization: { authorization?: string };
  private readonly key: SigningKey;
  private readonly outbound: Outbound;

  constructor(settings: Settings) {
    this.url = new URL(settings.ALERT_WEBHOOK_URL!);
    this.authorization = basicOf(this.url);
    this.url.username = this.url.password = '';
    this.key = new SigningKey('alerts', 'v1', settings.ALERT_WEBHOOK_SECRET!, null);
    // The operator has named this URL, not a subscriber, so it may be on a private network. To open that network for
    // callbacks instead would open it to everybody who may subscribe. Addresses that hand out credentials stay closed.
    this.outbound = new Outbound({
      ...settings,
      CALLBACK_NETWORKS: 'any',
      CALLBACK_ALLOWED_NETWORKS: [],
      CALLBACK_SCHEMES: ['http', 'https'],
      CALLBACK_PORTS: undefined,
    });
  }

  /**
   * @param at milliseconds since 1970, by the ledger's clock: a receiver refuses what is signed at another time than
   * its own
   */
  async send({ id, content }: NoteToSend, at: number, stopping: AbortSignal): Promise<SendResult> {
    const body = Buffer.from(webhookPayload(content, new Date(at)));
    const time = new CallTime(stopping);
    const agent = new Agent({ connect: this.outbound.connectorFor({}, this.timeoutMs) });
    try {
      const { statusCode } = await request(this.url, {
        method: 'POST',
        dispatcher: agent,
        signal: time.within(this.timeoutMs),
        headers: {
          'content-type': 'application/json',
          accept: '*/*',
          'user-agent': userAgent,
          'webhook-id': id,
          ...this.authorization,
          ...signatureHeaders([this.key], { id, at, body }),
        },
        body,
      });
      if (isSuccess(statusCode)) return { isSent: true };
      return { isSent: false, reason: `answered ${statusCode}`, failure: 'channel' };
    } catch (error) {
      const { name, code, message } = error as NodeJS.ErrnoException;
      const reason = name === 'TimeoutError' ? 'gave no answer in time' : `${code ?? name}: ${message}`;
      return { isSent: false, reason: reason.slice(0, 300), failure: 'channel' };
    } finally {
      time.end();
      // The body is not read; destroying the connection ends it.
      await agent.destroy();
    }
  }
}

function basicOf({ username, password }: URL): { authorization?: string } {
  if (username === '' && password === '') return {};
  const pair = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
  return { authorization: `Basic ${pair.toString('base64')}` };
}
