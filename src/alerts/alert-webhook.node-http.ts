import type { Socket } from 'node:net';
import type { Settings } from '../config/settings.js';
import { CallTime } from '../infra/call-time.js';
import { userAgent } from '../infra/user-agent.js';
import { connectTo } from '../outbound/connector.js';
import { Outbound } from '../outbound/outbound.service.js';
import { statusOver } from '../outbound/status-over.node-http.js';
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
  private readonly authorization: { authorization?: string };
  private readonly key: SigningKey;
  private readonly outbound: Outbound;
  private readonly consoleUrl: string | undefined;

  constructor(settings: Settings) {
    this.consoleUrl = settings.CONSOLE_URL;
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
    const body = Buffer.from(webhookPayload(content, new Date(at), this.consoleUrl));
    const time = new CallTime(stopping);
    const signal = time.within(this.timeoutMs);
    let socket: Socket | undefined;
    try {
      socket = await connectTo(this.outbound.connectorFor(), this.url, signal);
      const status = await statusOver(socket, this.url, {
        headers: {
          'content-type': 'application/json',
          accept: '*/*',
          'user-agent': userAgent,
          'webhook-id': id,
          ...this.authorization,
          ...signatureHeaders([this.key], { id, at, body }),
        },
        body,
        signal,
      });
      if (isSuccess(status)) return { isSent: true };
      return { isSent: false, reason: `answered ${status}`, failure: 'channel' };
    } catch (error) {
      // Node's client tells a signal's end as an abort.
      const isAbort = (error as Error).name === 'AbortError';
      const { name, code, message } = (isAbort ? signal.reason : error) as NodeJS.ErrnoException;
      const reason = name === 'TimeoutError' ? 'gave no answer in time' : `${code ?? name}: ${message}`;
      return { isSent: false, reason: reason.slice(0, 300), failure: 'channel' };
    } finally {
      time.end();
      socket?.destroy();
    }
  }
}

function basicOf({ username, password }: URL): { authorization?: string } {
  if (username === '' && password === '') return {};
  const pair = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
  return { authorization: `Basic ${pair.toString('base64')}` };
}
