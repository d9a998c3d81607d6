import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { Installation, type Published } from '../support/installation.js';
import { liveMemory, measurable } from '../support/live-memory.js';
import { answer, drip, hang, huge, nonsense, Receiver, redirect, reset, type Behaviour } from '../support/receiver.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

const megabyte = 1024 * 1024;

/** Headers without end. */
const endlessHeaders: Behaviour = (_request, response) => {
  const socket = response.socket!;
  socket.write('HTTP/1.1 200 OK\r\n');
  const push = () => {
    while (socket.writable && socket.write(`x-more: ${'.'.repeat(1000)}\r\n`));
    if (socket.writable) socket.once('drain', push);
  };
  push();
};

/** A head that will never be complete, a byte at a time. */
const dripHead: Behaviour = (_request, response) => {
  const socket = response.socket!;
  socket.write('HTTP/1.1 200 OK\r\nx-slow: ');
  const timer = setInterval(() => socket.write('.'), 20);
  socket.on('close', () => clearInterval(timer));
};

const breakOffHead: Behaviour = (_request, response) => void response.socket?.end('HTTP/1.1 200 OK\r\nx: ');

/** Announces more bytes than it sends, and closes. */
const breakOff: Behaviour = (_request, response) => {
  response.writeHead(200, { 'content-length': '100' });
  response.write('.', () => response.socket?.destroy());
};

/** Says exactly this, and closes. */
const raw =
  (text: string): Behaviour =>
  (_request, response) =>
    void response.socket?.end(text);

describe.each(stacks)('a hostile receiver on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let heraut: Installation;
  let hostile: Receiver;
  let healthy: Receiver;
  let channel: string;

  beforeAll(async () => {
    prepared = await stack.prepare();
  });

  afterAll(() => prepared.release());

  beforeEach(async () => {
    [hostile, healthy] = [await Receiver.start(), await Receiver.start()];
  });

  afterEach(async () => {
    await Promise.all([hostile.stop(), healthy.stop()]);
  });

  async function start(settings: Record<string, string>): Promise<void> {
    heraut = await Installation.start(prepared, settings);
    await heraut.setRetryPolicy({ maxRetries: 0, backoffFactor: 1 });
  }

  describe('alone', () => {
    // The receiver is the same in each case, and none of them may be kept from it by those before.
    beforeAll(() => start({ NOTIFICATION_REQUESTS_TIMEOUT: '30', CIRCUIT_BREAKER_FAILURES: '1000' }));

    afterAll(() => heraut.end());

    const allow = async (subscription: string, timeoutSeconds: number) => {
      const body = { timeoutSeconds };
      const { status } = await heraut.api.call('PATCH', `/admin/v1/subscriptions/${subscription}`, { body });
      expect(status).toBe(200);
    };

    it.each<[string, () => Behaviour, { status: number | null; error: RegExp; timeoutSeconds?: number }]>([
      ['hangs', () => hang, { status: null, error: /^no answer within 1 s$/, timeoutSeconds: 1 }],
      [
        'drips its head byte by byte',
        () => dripHead,
        { status: null, error: /^no answer within 1 s$/, timeoutSeconds: 1 },
      ],
      // Its head has to come within this time too, on a busy machine.
      [
        'drips an error byte by byte',
        () => drip(20, 500),
        { status: 500, error: /^HTTP 500: \.+$/, timeoutSeconds: 5 },
      ],
      [
        'answers with 100 MB of an error',
        () => huge(100 * megabyte, 500),
        { status: 500, error: /^HTTP 500: \.{500}$/ },
      ],
      ['answers with endless headers', () => endlessHeaders, { status: null, error: /HEADERS_OVERFLOW/ }],
      ['redirects', () => redirect(healthy.url), { status: 302, error: /^HTTP 302/ }],
      ['redirects for good', () => redirect(healthy.url, 308), { status: 308, error: /^HTTP 308/ }],
      ['resets the connection', () => reset, { status: null, error: /ECONNRESET/ }],
      ['breaks off its head', () => breakOffHead, { status: null, error: /UND_ERR_SOCKET|ECONNRESET/ }],
      ['speaks nonsense', () => nonsense, { status: null, error: /HPE_|HTTP\/1.1 protocol/ }],
      [
        'answers with text no database can store',
        () => answer(500, {}, 'a\0b\u{1F4A9}'.repeat(300)),
        { status: 500, error: /^HTTP 500: ab/ },
      ],
    ])('that %s costs one failed attempt, and affects no other receiver', async (_, behaviour, expected) => {
      const { status, error, timeoutSeconds } = expected;
      channel = await heraut.createChannel();
      const [subscription, other] = [
        await heraut.subscribe({ channel, url: hostile.url }),
        await heraut.subscribe({ channel, url: `${healthy.url}/other` }),
      ];
      if (timeoutSeconds) await allow(subscription, timeoutSeconds);
      hostile.always(behaviour());
      const { id } = await heraut.publish(channel);
      await heraut.becomes('delivered', id, other);
      const failed = await heraut.becomes('failed', id, subscription);
      expect(failed.attempts).toMatchObject([{ number: 1, status, error: expect.stringMatching(error) }]);
      expect(failed.lastError?.length).toBeLessThanOrEqual(1000);
      expect(hostile.notifications).toHaveLength(1);
      expect(healthy.notifications.map(({ path }) => path)).toEqual(['/webhook/other']);
    });

    it.each<[string, Behaviour]>([
      ['answers with 100 MB', huge(100 * megabyte)],
      ['drips its answer byte by byte', drip(20)],
      ['breaks off its answer', breakOff],
      ['sends a body with a 204', raw('HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello')],
      [
        'sends a 100 Continue that nobody asked for',
        raw('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n'),
      ],
    ])('has got its delivery although it %s', async (_what, behaviour) => {
      channel = await heraut.createChannel();
      const subscriptions = [
        await heraut.subscribe({ channel, url: hostile.url }),
        await heraut.subscribe({ channel, url: `${hostile.url}/once`, deliveryGuarantee: 'at-most-once' }),
      ];
      hostile.always(behaviour);
      const { id } = await heraut.publish(channel);
      for (const subscription of subscriptions) {
        const { attempts } = await heraut.becomes('delivered', id, subscription);
        expect(attempts).toMatchObject([{ number: 1, error: null }]);
      }
      expect(hostile.notifications.filter(({ path }) => path.endsWith('/once'))).toHaveLength(1);
    });
  });

  it('does not keep others from their deliveries, and uses bounded memory, also when there are many of its kind', async () => {
    // A hanging call lasts longer than the test: deliveries that arrive meanwhile did not wait for it.
    await start({
      NOTIFICATION_REQUESTS_TIMEOUT: '300',
      DELIVERY_LEASE_MS: '440000',
      CIRCUIT_BREAKER_FAILURES: '1000',
      // All 192 calls fit into half of the share of unproven endpoints: beyond that a hanging one would wait, and be
      // parked, where a busy machine takes seconds to publish.
      MAX_IN_FLIGHT: '2048',
      ...measurable,
    });
    // Each has an origin of its own, hence a window.
    const others: Receiver[] = [];
    const notifications = () => others.flatMap((other) => other.notifications);
    try {
      channel = await heraut.createChannel();
      const kinds: Record<string, Behaviour> = {
        hang,
        dripHead,
        huge: huge(100 * megabyte, 500),
        reset,
        nonsense,
        endlessHeaders,
      };
      for (const kind of Object.keys(kinds)) {
        for (let number = 0; number < 4; number++) {
          const other = await Receiver.start();
          others.push(other);
          await heraut.subscribe({ channel, url: `${other.url}/${kind}` });
          other.always(kinds[kind]!);
        }
      }
      const friendly = await heraut.createChannel();
      await heraut.subscribe({ channel: friendly, url: healthy.url });
      const before = await liveMemory(heraut.processes);

      // As many as the window of a new endpoint: all of them at the same time.
      const bad = await heraut.publishMany(channel, 8);
      const isHeld = (path: string) => /hang|dripHead/.test(path);
      const expectHeld = async () => {
        const states = await statesOf(bad);
        expect(states.filter((state) => state === 'failed')).toHaveLength(4 * 4 * 8);
        expect(states.filter((state) => state === 'queued')).toHaveLength(2 * 4 * 8);
      };
      await eventually(async () => (await expectHeld(), true), 'those that do not hang to have failed');
      expect(notifications().filter(({ path }) => isHeld(path))).toHaveLength(2 * 4 * 8);

      await heraut.publishMany(friendly, 101);
      await eventually(() => healthy.notifications.length === 101, 'all that is for the healthy one');
      await expectHeld(); // still at it

      const flooding = others.filter((other) => other.notifications.some(({ path }) => path.endsWith('/huge')));
      expect(flooding).toHaveLength(4);
      await eventually(
        () => flooding.every(({ answeredBytes }) => answeredBytes.length >= 8),
        'all huge answers to be over',
      );
      // They would have sent 3200 MB. Most of it is never read, and nothing that was read is kept.
      for (const bytes of others.flatMap((other) => other.answeredBytes)) expect(bytes).toBeLessThan(50 * megabyte);
      const kept = (await liveMemory(heraut.processes)) - before;
      expect(kept).toBeLessThan(4 * 8 * megabyte); // one each: as much as is read of an answer
      await Promise.all(others.map((other) => other.stop()));
      await eventually(
        async () => (await statesOf(bad)).every((state) => state === 'failed'),
        'every one of the others to have failed',
        { everyMs: 100 },
      );
      expect(healthy.notifications).toHaveLength(101);
    } finally {
      await heraut.end();
      await Promise.all(others.map((other) => other.stop()));
    }
  });

  /** Of all their deliveries. */
  async function statesOf(published: Published[]): Promise<string[]> {
    const pages = published.map(({ id }) => heraut.api.call('GET', `/admin/v1/deliveries?notification=${id}`));
    return (await Promise.all(pages)).flatMap(({ body }) => {
      const { deliveries } = body as { deliveries: { state: string }[] };
      return deliveries.map(({ state }) => state);
    });
  }
});
