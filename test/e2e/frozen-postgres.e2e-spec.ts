import { afterEach, describe, expect, it } from 'vitest';
import { Agent, request } from 'node:http';
import type { Socket } from 'node:net';
import pg from 'pg';
import { Api } from '../support/api.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { notificatie } from '../support/notificatie.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const publishers = 2000;
/**
 * Promised are 5/3 of DATABASE_TIMEOUT and a second, from when their request is read; here they, and what they call,
 * share a busy machine.
 */
const longestWaitMs = 60_000;
const body = JSON.stringify(notificatie('zaken'));

interface Answer {
  status: number | undefined;
  retryAfter: number;
  waitedMs: number;
}

/** The name of the statement goes with each of its messages. */
const isAccepting = (bytes: Buffer) => bytes.toString('latin1').includes('accept');

describe('while Postgres is frozen', () => {
  let database: TestDatabase;
  let direct: pg.Client;
  let proxy: TcpProxy;
  let api: Api;
  let agent: Agent;
  let authorization: string;

  async function begin(databaseTimeout: string): Promise<void> {
    database = await createDatabase();
    proxy = await TcpProxy.start(database.url);
    direct = new pg.Client({ connectionString: database.url });
    await direct.connect();
    api = await Api.start({ DATABASE_URL: proxy.url, DATABASE_TIMEOUT: databaseTimeout, DATABASE_POOL_SIZE: '4' });
    authorization = `Bearer ${api.superuserToken}`;
    // Not at once, where a second does not suffice; then it may be there although it was refused.
    const isThere = async () => (await api.get('/kanaal?naam=zaken')).list.length === 1;
    await eventually(
      async () => (await api.post('/kanaal', { naam: 'zaken' })).status === 201 || isThere(),
      'a channel',
    );
    agent = new Agent({ keepAlive: false });
  }
  afterEach(async () => {
    proxy.letGo();
    agent.destroy();
    await api.close();
    await proxy.cut();
    await direct.end();
    await database.drop();
  });

  const publish = (headers: Record<string, string> = {}, content = body, connected = () => {}): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const askedAt = performance.now();
      const call = request(`${api.base}/notificaties`, {
        method: 'POST',
        agent,
        headers: { authorization, 'content-type': 'application/json', ...headers },
      });
      call.on('socket', (socket) => socket.once('connect', connected));
      call.on('error', (error) => {
        connected();
        reject(error);
      });
      call.on('response', (response) => {
        response.resume();
        const { statusCode: status, headers: answered } = response;
        const retryAfter = Number(answered['retry-after']);
        response.on('end', () => resolve({ status, retryAfter, waitedMs: performance.now() - askedAt }));
      });
      call.end(content);
    });

  /**
   * That many at once, connected some at a time: where more wait to be accepted than a server's backlog has room for,
   * and this process is slow to accept them, the system resets some of them.
   */
  async function publishTogether(count: number, of: (nr: number) => [Record<string, string>?, string?]) {
    const answers: Promise<Answer>[] = [];
    while (answers.length < count) {
      const connections = Array.from({ length: Math.min(200, count - answers.length) }, () => {
        const [headers, content] = of(answers.length);
        return new Promise<void>((connected) => answers.push(publish(headers, content, connected)));
      });
      await Promise.all(connections);
    }
    return answers;
  }

  const stored = async () => {
    const { rows } = await direct.query<{ count: number }>('SELECT count(*)::int AS count FROM notification');
    return rows[0]!.count;
  };

  const busy = async () => {
    const { rows } = await direct.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM pg_stat_activity
       WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`,
    );
    return rows[0]!.count;
  };

  const countFull = async () => {
    const { text } = await api.get(`${api.origin}/metrics`);
    return Number(/^heraut_publications_not_stored_total\{reason="full"\} (\d+)$/m.exec(text)![1]);
  };

  const now = async () => (await direct.query<{ now: string }>('SELECT clock_timestamp()::text AS now')).rows[0]!.now;

  /**
   * The local ports of those connections on which Postgres has carried out nothing since that time, and which it has
   * not ended.
   */
  const unheard = async (since: string) => {
    const { rows } = await direct.query<{ client_port: number }>(
      `SELECT client_port FROM pg_stat_activity
       WHERE datname = current_database() AND client_port IS NOT NULL AND NOT (state = 'idle' AND state_change > $1)`,
      [since],
    );
    return new Set(rows.map((row) => row.client_port));
  };

  it('every publisher is refused with 503 and Retry-After, and nothing of that is committed when it thaws', async () => {
    await begin('1');
    // Until several connections are there: while Postgres is frozen, no other comes about, and each takes one
    // statement. Those that were given up because a statement took more than a second, as on a busy machine, do not
    // count.
    const accepting = new Set<Socket>();
    proxy.onClientData = (bytes, server) => {
      if (isAccepting(bytes)) accepting.add(server);
    };
    await eventually(async () => {
      await Promise.all(await publishTogether(300, () => []));
      return [...accepting].filter((server) => server.writable).length > 1;
    }, 'a second connection that accepts');

    // On a machine that is busy with something else, a second does not suffice for all of them: some were refused, and
    // are still being committed.
    await eventually(async () => (await busy()) === 0, 'Postgres to have carried out all of them');
    const before = await stored();
    proxy.holdUp();
    // With and without a key: both accepting statements.
    const keyOf = (nr: number): Record<string, string> => (nr % 500 === 0 ? { 'idempotency-key': `key-${nr}` } : {});
    const waiting = await publishTogether(publishers, (nr) => [keyOf(nr)]);
    const answers = await Promise.all(waiting); // all of them before it thaws
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
    expect(answers.every(({ retryAfter }) => retryAfter > 0)).toBe(true);
    expect(Math.max(...answers.map(({ waitedMs }) => waitedMs))).toBeLessThan(longestWaitMs);

    const late: number[] = [];
    proxy.onClientData = (bytes, { localPort }) => {
      if (isAccepting(bytes)) late.push(localPort!);
    };
    const thawed = await now();
    proxy.letGo();
    // One is enough: the kernel drops the bytes of a connection that the api reset instead of closing it.
    await eventually(() => late.length > 0, 'the statements that were on their way');
    // Most of their connections were given up, and end when Postgres has carried out what came on them. One that was
    // made while it was frozen may be used again: what had waited for it came too late, and was told so.
    await eventually(async () => {
      const still = await unheard(thawed);
      return late.every((port) => !still.has(port));
    }, 'their end');
    proxy.onClientData = undefined;
    expect(await stored()).toBe(before);
    await eventually(async () => (await publish()).status === 201, 'publishing');
  });

  it('publications for which there is no room are refused with 503 and Retry-After at once, and only those', async () => {
    await begin('120'); // those that have room wait for their turn for 40 s
    const proxied = await publish();
    expect(proxied.status).toBe(201);
    // Only what accepts: a second connection for that cannot be made while everything is frozen, and what waited for it
    // would be refused after five seconds for another reason, and make room.
    proxy.holdUpFrom(isAccepting);
    // 64 MiB may wait.
    const large = JSON.stringify({ ...JSON.parse(body), hoofdObject: `http://example.org/${'x'.repeat(1_000_000)}` });
    const answers: Answer[] = [];
    const refusedBefore = await countFull();
    const all = (await publishTogether(100, () => [{}, large])).map(async (answer) => void answers.push(await answer));
    await eventually(() => answers.length >= 30, 'those that have no room to be refused');
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
    expect(answers.every(({ retryAfter }) => retryAfter > 0)).toBe(true);
    expect((await countFull()) - refusedBefore).toBeGreaterThanOrEqual(30);
    proxy.letGo();
    await Promise.all(all);
    const written = answers.filter(({ status }) => status === 201).length;
    expect(written).toBeGreaterThanOrEqual(30);
    expect(await stored()).toBe(1 + written);
  });
});
