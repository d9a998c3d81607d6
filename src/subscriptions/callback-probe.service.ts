import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import * as http from 'node:http';
import * as https from 'node:https';
import { Config } from '../config/config.module.js';
import { Clock } from '../infra/clock.js';
import { UnavailableProblem, ValidationProblem, wholeInput } from '../infra/http/problem.js';
import { AddressRefused, RefusedAddresses } from '../infra/http/refused-addresses.js';
import { signatureHeaders } from '../signing/signature-headers.js';
import type { SigningKey } from '../signing/signing-key.js';

/**
 * Receivers recognise a probe by exactly this: channel `test`, and `kenmerken` present. Some answer 401 to every other body until
 * they have stored the subscription that is being made.
 */
const probeBody = JSON.stringify({
  kanaal: 'test',
  hoofdObject: 'http://some.hoofdobject.nl/',
  resource: 'some_resource',
  resourceUrl: 'http://some.resource.nl/',
  actie: 'create',
  aanmaakdatum: '2019-01-01T12:00:00Z',
  kenmerken: {},
});

/** A public page for trying out webhooks; it accepts every call, with or without authorization. */
const openHost = 'webhook.site';

export interface ProbeRequest {
  callbackUrl: string;
  auth: string;
  /** Whether the callback must also prove that it refuses a call without authorization. */
  isUrlNew: boolean;
  /** A receiver that knows them refuses a call that is not signed. */
  signingKeys: readonly SigningKey[];
}

type ProbeAnswer = { status: number } | { trouble: string };

/** Proves that a callback answers, and that it refuses calls without authorization, before a notification is sent there. */
@Injectable()
export class CallbackProbe implements OnModuleDestroy {
  private readonly refusedAddresses: RefusedAddresses;
  private readonly mustRefuseStrangers: boolean;
  private readonly closing = new AbortController();
  protected readonly timeouts = { connectMs: 10_000, overallMs: 30_000 };

  constructor(
    { settings }: Config,
    private readonly clock: Clock,
  ) {
    this.refusedAddresses = new RefusedAddresses(settings);
    this.mustRefuseStrangers = settings.TEST_CALLBACK_AUTH;
  }

  onModuleDestroy(): void {
    this.closing.abort();
  }

  /** @throws {ValidationProblem} with the answer or error of the callback */
  async prove({ callbackUrl, auth, isUrlNew, signingKeys }: ProbeRequest): Promise<void> {
    const url = new URL(callbackUrl);
    if (isUrlNew && this.mustRefuseStrangers && url.hostname !== openHost) {
      const answer = await this.post(url, {});
      if ('trouble' in answer) throw refused('callbackUrl', 'invalid-callback-url', answer.trouble);
      if (answer.status !== 401 && answer.status !== 403) {
        const reason = `answers ${answer.status} to a call without authorization; it must answer 401 or 403`;
        throw refused('callbackUrl', 'no-auth-on-callback-url', reason);
      }
    }
    const answer = await this.post(url, { authorization: auth, ...this.sign(signingKeys) });
    if ('trouble' in answer) throw refused(wholeInput, 'invalid-callback-url', answer.trouble);
    if (answer.status < 200 || answer.status > 209) {
      const reason = `answers ${answer.status} to a call with the authorization given; it must answer 200 to 209`;
      throw refused(wholeInput, 'invalid-callback-url', reason);
    }
  }

  private sign(signingKeys: readonly SigningKey[]): Record<string, string> {
    const id = randomUUID();
    const signed = signatureHeaders(signingKeys, { id, at: this.clock.now(), body: Buffer.from(probeBody) });
    return signed ? { 'webhook-id': id, ...signed } : {};
  }

  private async post(url: URL, headers: Record<string, string>): Promise<ProbeAnswer> {
    if (this.refusedAddresses.isRefusedHost(url.hostname)) return { trouble: new AddressRefused(url.hostname).message };
    try {
      return { status: await this.statusOf(url, headers) };
    } catch (error) {
      if (this.closing.signal.aborted) throw new UnavailableProblem('This server is stopping.', 1, error);
      return { trouble: describe(error as Error) };
    }
  }

  /** By Node's own client, which skips informational (1xx) responses, as the calls with notifications do. */
  private statusOf(
    { protocol, hostname, port, pathname, search }: URL,
    headers: Record<string, string>,
  ): Promise<number> {
    const { connectMs, overallMs } = this.timeouts;
    return new Promise((resolve, reject) => {
      const call = (protocol === 'https:' ? https : http).request({
        hostname: hostname.replace(/^\[|\]$/g, ''),
        port,
        path: pathname + search,
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        agent: false,
        lookup: this.refusedAddresses.lookup,
        signal: AbortSignal.any([this.closing.signal, AbortSignal.timeout(overallMs)]),
      });
      const tooLong = setTimeout(() => call.destroy(Object.assign(new Error(), { code: 'ETIMEDOUT' })), connectMs);
      call.on('socket', (socket) => socket.once('connect', () => clearTimeout(tooLong)));
      call.on('close', () => clearTimeout(tooLong));
      call.on('error', reject);
      call.on('response', ({ statusCode = 0 }) => {
        resolve(statusCode);
        call.destroy(); // only the status counts: the body, however long, is not read
      });
      call.end(probeBody);
    });
  }
}

const refused = (name: string, code: string, trouble: string) =>
  new ValidationProblem([{ name, code, reason: `The callback ${trouble}.` }]);

function describe(error: Error & { code?: string }): string {
  const { name, code = '', message, cause } = error;
  if (error instanceof AddressRefused) return `is refused: ${message}`;
  const isLate = name === 'AbortError' && (cause as Error | undefined)?.name === 'TimeoutError';
  if (isLate || code.includes('TIMEOUT') || code === 'ETIMEDOUT') return 'does not answer in time';
  if (/CERT|TLS|SSL|SELF_SIGNED|EPROTO|UNABLE_TO/.test(code)) return `fails at TLS: ${code}`;
  return `cannot be reached: ${code || message}`;
}
