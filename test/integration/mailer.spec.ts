import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, Socket, type AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Mailer } from '../../src/alerts/mailer.nodemailer.js';
import type { NoteToSend } from '../../src/alerts/note.js';
import { readSettings } from '../../src/config/settings.js';
import { makeCertificate } from '../support/certificates.js';
import { Mailbox } from '../support/mailbox.js';

const authority = makeCertificate('authority');
const certificate = makeCertificate('localhost', { by: authority, hosts: ['localhost', '127.0.0.1'] });
const password = `p-${randomUUID()}`;
const noteId = randomUUID();
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const noteTo = (address: string): NoteToSend => ({
  id: noteId,
  channel: 'mail',
  address,
  content: { kind: 'test', audience: 'operator', news: [], more: 0 },
});

const mailer = ({ port }: Mailbox, settings: Record<string, string> = {}, trusted = authority) =>
  new Mailer(
    readSettings({
      EMAIL_HOST: 'localhost',
      EMAIL_PORT: String(port),
      DEFAULT_FROM_EMAIL: 'Heraut, the broker <heraut@example.org>',
      ...settings,
    }),
    trusted.certificate,
  );

const running = new AbortController().signal;
const at = Date.parse('2025-06-01T12:00:00Z');

describe('mail of alerts', () => {
  let secure: Mailbox;
  let plain: Mailbox;
  let oneByOne: Mailbox;
  const login = { EMAIL_HOST_USER: 'heraut', EMAIL_HOST_PASSWORD: password };

  beforeAll(async () => {
    secure = await Mailbox.start({ certificate, users: { heraut: password } });
    plain = await Mailbox.start();
    oneByOne = await Mailbox.start({ takesOneByOne: true });
    for (const mailbox of [plain, oneByOne])
      for (const status of [421, 450, 550, 553]) mailbox.refused.set(`status-${status}@example.org`, status);
  });
  afterAll(() => Promise.all([secure.stop(), plain.stop(), oneByOne.stop()]));

  it('goes over TLS, with the password, from the sender of the settings', async () => {
    expect(await mailer(secure, login).send(noteTo('ops@example.org'), at, running)).toEqual({ isSent: true });
    expect(secure.mailTo('ops@example.org')).toMatchObject([
      {
        isOverTls: true,
        user: 'heraut',
        subject: '[Heraut] Test of alerts',
        sender: { name: 'Heraut, the broker', address: 'heraut@example.org' },
        messageId: `<${noteId}@example.org>`,
        date: '2025-06-01T12:00:00.000Z',
      },
    ]);
  });

  it('is not sent, nor the password, to a server without TLS, or of whom another authority vouches', async () => {
    expect(await mailer(plain, login).send(noteTo('ops@example.org'), at, running)).toMatchObject({
      isSent: false,
      failure: 'channel',
      reason: expect.stringMatching(/^ETLS/),
    });
    const other = makeCertificate('other authority');
    expect(await mailer(secure, login, other).send(noteTo('untrusting@example.org'), at, running)).toMatchObject({
      isSent: false,
      reason: expect.stringMatching(/^E(SOCKET|TLS)/),
    });
    expect([plain.mailTo('ops@example.org'), secure.mailTo('untrusting@example.org')]).toEqual([[], []]);
  });

  it('is sent in plain text where the settings say so', async () => {
    expect(await mailer(plain, { EMAIL_USE_TLS: 'false' }).send(noteTo('plain@example.org'), at, running)).toEqual({
      isSent: true,
    });
    expect(plain.mailTo('plain@example.org')).toMatchObject([{ isOverTls: false }]);
  });

  describe.each(['all commands at once', 'one command after the other'])('to a server that takes %s', (how) => {
    const send = (recipient: string, sender: string) => {
      const settings = { EMAIL_USE_TLS: 'false', DEFAULT_FROM_EMAIL: sender };
      const mailbox = how === 'all commands at once' ? plain : oneByOne;
      return mailer(mailbox, settings).send(noteTo(recipient), at, running);
    };

    it.each([
      [550, 'recipient-refused'],
      [450, 'recipient-deferred'],
      [421, 'channel'], // it closes the connection (RFC 5321 §3.8)
    ])('and answers %i to a recipient, says whom that concerns: %s', async (status, failure) => {
      expect(await send(`status-${status}@example.org`, 'heraut@example.org')).toMatchObject({
        isSent: false,
        failure,
        reason: expect.stringContaining(String(status)),
      });
    });

    it.each([450, 553])('and answers %i to the sender of all mail, is no refusal of a recipient', async (status) => {
      expect(await send('ops@example.org', `status-${status}@example.org`)).toMatchObject({
        isSent: false,
        failure: 'channel',
        reason: expect.stringMatching(`^EENVELOPE.*${status}`),
      });
    });
  });

  it('that is refused as long as no password is given is refused to all', async () => {
    expect(await mailer(secure).send(noteTo('ops@example.org'), at, running)).toMatchObject({
      isSent: false,
      failure: 'channel',
      reason: expect.stringMatching(/^EENVELOPE.*530/),
    });
  });

  it('is not sent with a wrong password, which no reason shows', async () => {
    const wrong = `w-${randomUUID()}`;
    const result = await mailer(secure, { ...login, EMAIL_HOST_PASSWORD: wrong }).send(
      noteTo('ops@example.org'),
      at,
      running,
    );
    expect(result).toMatchObject({ isSent: false, failure: 'channel', reason: expect.stringMatching(/^EAUTH.*535/) });
    expect(JSON.stringify(result)).not.toContain(wrong);
  });

  it.each(['ops@example.org\r\nBcc: all@example.org', 'ops@example.org, all@example.org', 'ops@example.org>\r\nDATA'])(
    'is not sent to %j, which is no address',
    async (address) => {
      const before = secure.received.length;
      expect(await mailer(secure, login).send(noteTo(address), at, running)).toEqual({
        isSent: false,
        failure: 'recipient-refused',
        reason: 'not a mail address',
      });
      expect(secure.received).toHaveLength(before);
    },
  );

  it.each(['it takes too long altogether', 'this process stops'])(
    'is given up, and its connection closed, where %s',
    async (why) => {
      const stopping = new AbortController();
      const server = createServer((socket) => {
        socket.on('error', () => {}).write('220-welcome\r\n'); // more to come
        if (why === 'this process stops') stopping.abort();
        // A limit to which nothing refers but what it is to end is gone then.
        else collectGarbage();
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const settings = readSettings({
        EMAIL_HOST: '127.0.0.1',
        EMAIL_PORT: String((server.address() as AddressInfo).port),
        DEFAULT_FROM_EMAIL: 'heraut@example.org',
      });
      const patient = new Mailer(settings, undefined, why === 'this process stops' ? undefined : 500);
      const result = await patient.send(noteTo('ops@example.org'), at, stopping.signal);
      expect(result).toMatchObject({ isSent: false, failure: 'channel', reason: expect.stringMatching(/^EABORT/) });
      await new Promise((resolve) => server.close(resolve)); // without a connection
    },
  );

  it.each([
    ['broker.gemeente.example', 'broker.gemeente.example'],
    ['4f1c2d7a9b3e', 'example.org'],
    ['10.1.2.3', 'example.org'],
  ])('greets the server from the machine %s as %s', async (machine, name) => {
    const settings = readSettings({
      EMAIL_HOST: '127.0.0.1',
      EMAIL_PORT: String(plain.port),
      EMAIL_USE_TLS: 'false',
      DEFAULT_FROM_EMAIL: 'heraut@example.org',
    });
    const address = `${randomUUID()}@example.org`;
    await new Mailer(settings, undefined, undefined, machine).send(noteTo(address), at, running);
    expect(plain.mailTo(address)).toMatchObject([{ greetedAs: name }]);
  });

  it('waits for a server that greets after most of a minute', async () => {
    const late = await Mailbox.start();
    late.beforeGreeting = async () => {
      vi.advanceTimersByTime(45_000);
    };
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true });
    try {
      const result = await mailer(late, { EMAIL_USE_TLS: 'false' }).send(noteTo('ops@example.org'), at, running);
      expect(result).toEqual({ isSent: true });
    } finally {
      vi.useRealTimers();
      await late.stop();
    }
  });

  it('waits for the acknowledgement for as long as a mail may take', async () => {
    const slow = await Mailbox.start();
    const silences = vi.spyOn(Socket.prototype, 'setTimeout');
    let longestSilence: number | undefined;
    slow.beforeAcknowledging = async () => {
      const ofClient = silences.mock.contexts.findLastIndex((socket) => (socket as Socket).remotePort === slow.port);
      longestSilence = silences.mock.calls[ofClient]?.[0];
    };
    try {
      const result = await mailer(slow, { EMAIL_USE_TLS: 'false' }).send(noteTo('ops@example.org'), at, running);
      expect(result).toEqual({ isSent: true });
      expect(longestSilence).toBe(100_000);
    } finally {
      silences.mockRestore();
      await slow.stop();
    }
  });

  it('that finds nobody listening says so', async () => {
    const gone = await Mailbox.start();
    await gone.stop();
    expect(await mailer(gone, login).send(noteTo('ops@example.org'), at, running)).toMatchObject({
      isSent: false,
      reason: expect.stringContaining('ECONNREFUSED'),
    });
  });
});
