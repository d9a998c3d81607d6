import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { callbackify } from 'node:util';
import PostalMime from 'postal-mime';
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server';
import type { Certificate } from './certificates.js';

export interface ReceivedMail {
  /** As the sender of the envelope gave them. */
  from: string;
  to: string[];
  subject: string;
  text: string;
  messageId: string;
  /** ISO 8601. */
  date: string;
  sender: { name: string; address: string };
  isOverTls: boolean;
  /** The name by which its sender greeted the server. */
  greetedAs: string;
  user: string | undefined;
}

export interface MailboxOptions {
  /** Offers STARTTLS with it; none: the server does not offer it. */
  certificate?: Certificate;
  /** Then a user must show who it is. */
  users?: Record<string, string>;
  /** Does not offer to take several commands at once (RFC 2920). */
  takesOneByOne?: boolean;
}

/** An SMTP server that keeps what it gets. */
export class Mailbox {
  readonly received: ReceivedMail[] = [];
  /** The status with which an address is not accepted, as the sender or a recipient. */
  readonly refused = new Map<string, number>();
  /** The server waits for it before it greets a caller. */
  beforeGreeting: () => Promise<void> = async () => {};
  /** The same before it acknowledges a mail, which it has kept then. */
  beforeAcknowledging: () => Promise<void> = async () => {};
  port = 0;
  private server: SMTPServer | undefined;

  private constructor(private readonly options: MailboxOptions) {}

  static async start(options: MailboxOptions = {}): Promise<Mailbox> {
    const mailbox = new Mailbox(options);
    await mailbox.listen();
    return mailbox;
  }

  /** Again on the same port after a stop. */
  async listen(): Promise<void> {
    this.server = new SMTPServer(this.serverOptions());
    this.server.on('error', () => {}); // a client that does not trust the certificate
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server.server, 'listening');
    this.port = (this.server.server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.server!.close(() => resolve());
    });
  }

  /** To that address, the oldest first. */
  mailTo(address: string): ReceivedMail[] {
    return this.received.filter(({ to }) => to.includes(address));
  }

  private serverOptions(): SMTPServerOptions {
    const { certificate, users, takesOneByOne = false } = this.options;
    return {
      ...(certificate ? { cert: certificate.certificate, key: certificate.key } : { disabledCommands: ['STARTTLS'] }),
      authOptional: users === undefined,
      hidePIPELINING: takesOneByOne,
      disableReverseLookup: true,
      logger: false,
      closeTimeout: 1000,
      onConnect: callbackify((_session: SMTPServerSession) => this.beforeGreeting()),
      onAuth: ({ username = '', password }, _session, done) =>
        users?.[username] === password ? done(null, { user: username }) : done(new Error('Invalid login')),
      onMailFrom: ({ address }, _session, done) => done(this.refusalOf(address)),
      onRcptTo: ({ address }, _session, done) => done(this.refusalOf(address)),
      onData: callbackify((stream: Readable, session: SMTPServerSession) => this.keep(stream, session)),
    };
  }

  private refusalOf(address: string): Error | null {
    const responseCode = this.refused.get(address);
    return responseCode === undefined ? null : Object.assign(new Error('Not accepted'), { responseCode });
  }

  private async keep(stream: Readable, session: SMTPServerSession): Promise<void> {
    const { envelope, secure, user, hostNameAppearsAs } = session;
    const { subject = '', text = '', messageId = '', date = '', from } = await PostalMime.parse(await buffer(stream));
    this.received.push({
      from: envelope.mailFrom ? envelope.mailFrom.address : '',
      to: envelope.rcptTo.map(({ address }) => address),
      subject,
      text,
      messageId,
      date,
      sender: { name: from?.name ?? '', address: from?.address ?? '' },
      isOverTls: secure,
      greetedAs: hostNameAppearsAs,
      user: user as string | undefined,
    });
    await this.beforeAcknowledging();
  }
}
