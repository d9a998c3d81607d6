import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { createTransport, type Transporter } from 'nodemailer';
import type { Settings } from '../config/settings.js';
import { mailAddress, type MailSender } from '../config/setting-types.js';
import { CallTime } from '../infra/call-time.js';
import { withoutSecret } from '../infra/logging/without-secret.js';
import { mailText } from './mail-text.js';
import type { NoteToSend, SendFailure, SendResult } from './note.js';

/** Of the whole mail; less than the lease of a note. A server that says a little now and then would go on for ever. */
const longestMs = 100_000;
/**
 * From the look-up of its name to the end of STARTTLS: Nodemailer ends the wait for the greeting with that for the
 * connection. A server that looks up its caller greets late.
 */
const toBeginMs = 60_000;
const tlsFromTheStart = 465;
/** It may be the answer to any command (RFC 5321 §3.8). */
const isClosing = 421;

type MailSettings = Pick<
  Settings,
  | 'EMAIL_HOST'
  | 'EMAIL_PORT'
  | 'EMAIL_USE_TLS'
  | 'EMAIL_HOST_USER'
  | 'EMAIL_HOST_PASSWORD'
  | 'DEFAULT_FROM_EMAIL'
  | 'CONSOLE_URL'
>;

/** Sends notes as mail, one message and one connection each: they are few. The server is the operator's own. */
export class Mailer {
  private readonly transport: Transporter;
  private readonly sender: MailSender;
  private readonly password: string;
  private readonly consoleUrl: string | undefined;

  /**
   * @param authority certificates in PEM to trust instead of those that Node trusts
   * @param longest milliseconds that one mail may take
   * @param machine name of this one
   */
  constructor(
    settings: MailSettings,
    authority?: string,
    private readonly longest = longestMs,
    machine = hostname(),
  ) {
    const { EMAIL_HOST: host, EMAIL_PORT: port, EMAIL_HOST_USER: user } = settings;
    this.password = settings.EMAIL_HOST_PASSWORD ?? '';
    this.consoleUrl = settings.CONSOLE_URL;
    this.sender = settings.DEFAULT_FROM_EMAIL!;
    this.transport = createTransport({
      host: host!,
      port,
      name: greetingName(machine, this.sender),
      secure: port === tlsFromTheStart,
      // Otherwise a server, or somebody on the way, that does not offer TLS is sent the password and the mail in plain
      // text.
      requireTLS: settings.EMAIL_USE_TLS,
      ignoreTLS: !settings.EMAIL_USE_TLS,
      tls: authority === undefined ? {} : { ca: authority },
      ...(user === undefined ? {} : { auth: { user, pass: this.password } }),
      connectionTimeout: toBeginMs,
      greetingTimeout: toBeginMs,
      // No silence has a shorter limit. Some servers look a mail through, or copy it, before they acknowledge it (RFC
      // 5321 §4.5.3.2.6): without the wait it would be sent again, though it has arrived.
      socketTimeout: longest,
      dnsTimeout: 10_000,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }

  /**
   * @param at milliseconds since 1970, by the ledger's clock
   * @param stopping ends it at once; perhaps the mail was sent nevertheless
   */
  async send({ id, address, content }: NoteToSend, at: number, stopping: AbortSignal): Promise<SendResult> {
    // An address with the end of a line in it would be sent as it is.
    if (!mailAddress.safeParse(address).success)
      return { isSent: false, reason: 'not a mail address', failure: 'recipient-refused' };
    const domain = this.sender.address.split('@')[1]!;
    const time = new CallTime(stopping);
    try {
      const { rejected = [] } = await this.transport.sendMail({
        ...mailText(content, this.consoleUrl),
        from: this.sender,
        to: { name: '', address },
        date: new Date(at),
        // The same where it is sent again because nobody saw that it was sent: the reader's program may show one of
        // them.
        messageId: `<${id}@${domain}>`,
        signal: time.within(this.longest),
        headers: { 'Auto-Submitted': 'auto-generated' },
      });
      if (rejected.length === 0) return { isSent: true };
      return { isSent: false, reason: 'the recipient was refused', failure: 'recipient-refused' };
    } catch (error) {
      return this.failed(error as SmtpError);
    } finally {
      time.end();
    }
  }

  private failed(error: SmtpError): SendResult {
    const reason = `${error.code ?? 'failed'}: ${withoutSecret(error.message, [this.password])}`.slice(0, 300);
    return { isSent: false, reason, failure: failureOf(error) };
  }
}

/**
 * The name by which the server is greeted. That of a container is no domain, and some servers close for the address
 * that Nodemailer says then.
 */
const greetingName = (machine: string, { address }: MailSender): string =>
  machine.includes('.') && !isIP(machine) ? machine : address.split('@')[1]!;

/** As Nodemailer makes it. */
interface SmtpError extends Error {
  code?: string;
  /** That was answered, or was not. */
  command?: string;
  responseCode?: number;
}

/** A server that refuses the sender, or wants a password first, does so with every mail, whoever is to get it. */
function failureOf({ code, command, responseCode = 0 }: SmtpError): SendFailure {
  if (code !== 'EENVELOPE' || command !== 'RCPT TO' || responseCode === isClosing) return 'channel';
  // 5xx: for good (RFC 5321 §4.2.1).
  return responseCode >= 500 ? 'recipient-refused' : 'recipient-deferred';
}
