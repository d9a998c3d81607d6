import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createServer } from 'node:net';
import { Client } from 'undici';
import { lockedBy } from '../../scripts/faults/locks.mjs';
import { accepts, freePort } from '../../scripts/private-servers/private-server.mjs';
import { queryOnce } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { Installation } from '../support/installation.js';
import { answer, arrival, Receiver } from '../support/receiver.js';
import { HerautProcess, isAlive, type CallOptions, type LogEvent } from '../support/spawn-heraut.js';
import { real, type PreparedStack } from '../support/stacks.js';

/** Each process takes itself for the only one of a machine, so that the ledger knows which pid has which id. */
const hostOfItsOwn = new URL('../../scripts/faults/host-of-its-own.mjs', import.meta.url).href;
/** A request on a connection of its own: from one that is kept open, the same process would answer each time. */
const alone = { connection: 'close' };

describe('an installation with PROCESSES=2', () => {
  let prepared: PreparedStack;
  let heraut: Installation;
  let receiver: Receiver;
  let channel: string;
  /** Of ADMIN_PORT, which the processes share as well. */
  let adminUrl: string;
  /** The log up to the last start of the installation belongs to processes that are gone. */
  let logBegins = 0;

  beforeAll(async () => {
    prepared = await real.prepare();
    const adminPort = String(await freePort());
    adminUrl = `http://127.0.0.1:${adminPort}`;
    const settings = { PROCESSES: '2', ADMIN_PORT: adminPort, NODE_OPTIONS: `--import=${hostOfItsOwn}` };
    heraut = await Installation.startWith(prepared, ['api,worker,dispatcher'], settings);
  });

  afterAll(async () => {
    await heraut.api.stop(); // in order: those that it supervises would outlive a kill, and their database
    await prepared.release();
  });

  beforeEach(async () => {
    receiver = await Receiver.start();
    await bothListen();
    channel = await heraut.createChannel();
    await heraut.subscribe({ channel, url: receiver.url });
  });

  afterEach(() => receiver.stop());

  const log = () => heraut.api.logs.slice(logBegins);
  const pids = (event: string, of: LogEvent[] = log()) =>
    of.filter((logged) => logged.event === event).map(({ pid }) => pid as number);
  /** Of the processes that serve the port at present, the oldest first. */
  const listening = () => pids('process.listening').filter((pid) => !pids('process.ended').includes(pid));
  const bothListen = () => eventually(() => listening().length === 2 && listening(), 'both processes to listen');

  it('shares the port between two processes, one of which dispatches, and writes one log without torn lines', async () => {
    const outputBefore = heraut.api.output.length; // one that a test before has killed may have left half a line
    const [first, second] = await bothListen();
    const roles = new Map(log().map(({ event, pid, roles: of }) => [event === 'process.listening' ? pid : 0, of]));
    expect([roles.get(first), roles.get(second)].toSorted()).toEqual([
      ['api', 'worker'],
      ['api', 'worker', 'dispatcher'],
    ]);
    const before = log().length;
    const published = await publishAlone(20);
    await arrive(published);
    await eventually(() => {
      const since = log().slice(before);
      const accepting = new Set(pids('notification.accepted', since));
      const attempted = new Set(
        since.filter(({ event }) => event === 'delivery.attempted').map(({ notificationId }) => notificationId),
      );
      return accepting.size === 2 && published.every((id) => attempted.has(id));
    }, 'both to have accepted, and the log to be complete');
    expect(heraut.api.output.slice(outputBefore)).toEqual([]);
  });

  it.each(['SIGKILL', 'SIGTERM'] as const)(
    'starts a process again after %s; nothing is lost, nothing comes again but what it had in flight when it was killed, and its counts stay',
    async (signal) => {
      const [victim = 0] = await bothListen();
      receiver.always((request, response) => setTimeout(() => answer(204)(request, response), 50));
      await publishAlone(10);
      const counted = await accepted();
      const load = publishUntil(() => pids('process.listening').length > before);
      const before = pids('process.listening').length;
      const mayComeAgain = await end(victim, signal);
      const published = await load;
      const ended = log().find(({ event, pid }) => event === 'process.ended' && pid === victim);
      expect(ended).toMatchObject(signal === 'SIGKILL' ? { signal, status: null } : { signal: null, status: 0 });
      expect(ended).toMatchObject({ startsAgainInMs: expect.any(Number) });
      await bothListen();
      await arrive(published);
      expect(await cameAgainBeside(mayComeAgain)).toEqual([]);
      expect(await accepted()).toBeGreaterThanOrEqual(counted);
    },
  );

  describe('shares what one process accepts with the other, where it has more than 512 deliveries to send', () => {
    const nrs = Array.from({ length: 100 }, (_, nr) => nr);
    const longestAnswerMs = 4000;
    let shared: string;
    let answersAfterMs: number;

    beforeEach(async () => {
      answersAfterMs = 300;
      shared = await heraut.createChannel();
      for (const nr of nrs) await heraut.subscribe({ channel: shared, url: `${receiver.url}/${nr}` });
      receiver.always((request, response) => setTimeout(() => answer(204)(request, response), answersAfterMs));
    });

    it('and sends each once, long before a rule would recover it', async () => {
      const before = log().length;
      const published = await publishUntilShared();
      await arriveAll(published);
      const since = () => log().slice(before);
      const attempts = () => since().filter(({ event }) => event === 'delivery.attempted');
      const ids = new Set(published);
      const logged = () => attempts().filter(({ notificationId }) => ids.has(notificationId as string)).length;
      await eventually(() => logged() >= published.length * nrs.length, 'all of them in the log');
      expect(new Set(receiver.arrivals).size).toBe(receiver.arrivals.length);
      const acceptedBy = new Map(
        since()
          .filter(({ event }) => event === 'notification.accepted')
          .map(({ notificationId, pid }) => [notificationId, pid]),
      );
      const bySibling = attempts().filter(({ notificationId, pid }) => acceptedBy.get(notificationId) !== pid);
      expect(bySibling).not.toEqual([]);
      // Other rules may find what processes had that other tests have killed.
      expect(since().filter(({ rule }) => rule === 'lease-ended')).toEqual([]);
    });

    it('and loses nothing when one of them is killed, and sends again only what that one had in flight', async () => {
      const [, victim = 0] = await bothListen();
      const published = await publishUntilShared();
      const mayComeAgain = await end(victim, 'SIGKILL');
      await arriveAll(published);
      await eventually(() => pids('process.ended').includes(victim), 'its end');
      expect(await cameAgainBeside(mayComeAgain)).toEqual([]);
      expect(await taken()).toBeGreaterThan(0);
    });

    /**
     * By several at once: what a process finds out of the other one is out of date, on a busy machine, before a lone
     * publisher could publish again. Some with many deliveries, which keep the process busy, and some with one, for
     * which the other one has room. On a busy machine this publishes no faster than the process sends: each time that
     * it was not enough the receiver becomes slower. @returns the ids of those with many
     */
    async function publishUntilShared(): Promise<string[]> {
      const before = await taken();
      const published: string[] = [];
      const publishers = await toOneProcess();
      await eventually(async () => {
        await Promise.all(
          publishers.map(async ({ via }) => {
            for (let nr = 0; nr < 10; nr++)
              if (nr % 3 === 0) published.push((await heraut.publish(shared, {}, via)).id);
              else await heraut.publish(channel, {}, via);
          }),
        );
        if ((await taken()) > before) return true;
        answersAfterMs = Math.min(longestAnswerMs, 2 * answersAfterMs);
        return false;
      }, 'something that the other process has taken');
      await Promise.all(publishers.map(({ connection }) => connection.close()));
      return published;
    }

    /** Connections to one of the processes. They are dealt out in turn. */
    async function toOneProcess() {
      const all = Array.from({ length: 8 }, () => {
        const connection = new Client(heraut.api.url);
        return { connection, via: viaApi({ dispatcher: connection }) };
      });
      const ids = await Promise.all(all.map(async ({ via }) => (await heraut.publish(channel, {}, via)).id));
      const acceptedBy = await eventually(() => {
        const events = log().filter(({ event }) => event === 'notification.accepted');
        const found = ids.map((id) => events.find(({ notificationId }) => notificationId === id)?.pid);
        return !found.includes(undefined) && found;
      }, 'their acceptance in the log');
      const publishers = all.filter((_, nr) => acceptedBy[nr] === acceptedBy[0]);
      const others = all.filter((each) => !publishers.includes(each));
      await Promise.all(others.map(({ connection }) => connection.close()));
      return publishers;
    }

    const taken = () => sample('heraut_deliveries_taken_from_siblings_total');

    async function arriveAll(published: string[]): Promise<void> {
      const { pathname } = new URL(receiver.url);
      const expected = published.flatMap((id) => nrs.map((nr) => arrival(id, `${pathname}/${nr}`)));
      await eventually(() => {
        const arrived = new Set(receiver.arrivals);
        return expected.every((each) => arrived.has(each));
      }, 'all of them to arrive');
    }
  });

  it('serves metrics, and operators, at ADMIN_PORT alone', async () => {
    for (const path of ['/metrics', '/docs', '/console/', '/admin/v1/applications']) {
      const { status } = await heraut.api.call('GET', path, { headers: alone });
      expect([path, status]).toEqual([path, 404]);
    }
    expect((await fetch(`${adminUrl}/docs`, { headers: alone })).status).toBe(200);
  });

  it('counts all notifications, whichever process accepted them and is gone since', async () => {
    const before = await acceptedInAll();
    await publishAlone(10);
    await counts(before + 10);
    const both = await bothListen();
    for (const pid of both) process.kill(pid, 'SIGKILL');
    await eventually(() => both.every((pid) => !listening().includes(pid)), 'their end');
    await bothListen();
    await counts(before + 10);
    await publishAlone(5);
    await counts(before + 15);
    // Histograms add up like counters: of those that ended, and of those that run.
    const histogram = 'heraut_publication_duration_seconds_count';
    await eventually(async () => (await sample(histogram)) === before + 15, 'those of a histogram');
    expect(await sample('heraut_processes')).toBe(2);
    expect(await sample('heraut_processes_ended_total')).toBeGreaterThanOrEqual(2);
  });

  it('answers a scrape although a process hangs, with what it had counted, and replaces it', async () => {
    const before = await acceptedInAll();
    await publishAlone(10);
    await counts(before + 10);
    const [, hanging = 0] = await bothListen();
    process.kill(hanging, 'SIGSTOP');
    try {
      // A connection that the hanging process was given first is not answered.
      expect(await eventually(() => accepted(AbortSignal.timeout(3000)), 'an answer')).toBe(before + 10);
      await eventually(() => !listening().includes(hanging), 'its end');
    } finally {
      if (isAlive(hanging)) process.kill(hanging, 'SIGCONT');
    }
    expect(pids('process.unresponsive')).toContain(hanging);
  });

  it.each([1, 2])('notes in the ledger at once that %i of its processes were killed', async (count) => {
    const both = await bothListen();
    const before = await eventually(async () => {
      const alive = await processes('expires_at > now()');
      return alive.length === 2 && alive;
    }, 'both in the ledger');
    const killed = await Promise.all(both.slice(-count).map(idOf));
    for (const pid of both.slice(-count)) process.kill(pid, 'SIGKILL');
    await eventually(async () => {
      const left = await processes(`expires_at > '-infinity'`);
      // By its heartbeat alone, it is in the ledger until it has been dead for a minute.
      const noted = before.filter(
        ({ id, expires_at }) => !left.some((row) => row.id === id) && Date.now() < expires_at.getTime() + 60_000,
      );
      expect(noted.map(({ id }) => id).toSorted()).toEqual(killed.toSorted());
      return true;
    }, 'their ends, and no others, in the ledger');
  });

  it('ends as a whole with status 0 when its supervisor gets SIGTERM', async () => {
    const both = await bothListen();
    const published = await publishAlone(20);
    const before = log().length;
    expect(await heraut.api.stop()).toBe(0);
    expect(both.filter(isAlive)).toEqual([]);
    expect(pids('process.stopped', log().slice(before)).toSorted()).toEqual(both.toSorted());
    expect(log().at(-1)).toMatchObject({ event: 'supervisor.stopped' });
    await startAgain();
    await arrive(published);
  });

  it('leaves no process behind when its supervisor is killed, and starts again on the same port', async () => {
    const both = await bothListen();
    await heraut.api.kill9();
    await eventually(() => !both.some(isAlive), 'the end of its processes');
    for (const url of [heraut.api.url, adminUrl]) expect(await accepts(Number(new URL(url).port))).toBe(false);
    await startAgain();
    await arrive(await publishAlone(5));
  });

  /** That the ledger knows. */
  const processes = (which: string) =>
    queryOnce<{ id: string; expires_at: Date }>(
      prepared.settings.DATABASE_URL,
      `SELECT id, expires_at FROM process WHERE ${which}`,
    );

  async function idOf(pid: number): Promise<string> {
    const [row] = await processes(`host = 'pid-${pid}'`);
    return row!.id;
  }

  /**
   * @returns the deliveries that may come again because of it: all that the process had in flight when it was killed,
   * and nothing if it ends in order
   */
  async function end(pid: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<Set<string>> {
    if (signal === 'SIGTERM') {
      process.kill(pid, signal);
      return new Set();
    }
    process.kill(pid, 'SIGSTOP'); // as long as it is looked up, it sends nothing, and nobody takes anything over from it
    try {
      const id = await idOf(pid);
      const inHand = await deliveries<{ key: string }>(
        `notification_id || ':' || subscription_id AS key`,
        `process = '${id}' AND state IN ('queued', 'sending')`,
      );
      const locked = await lockedBy(prepared.settings.REDIS_URL!, [id]);
      const keys = [...inHand.map(({ key }) => key), ...locked.map((key) => key.replace('i9y:delivery:', ''))];
      const subscriptions = await queryOnce<{ id: string; callback_url: string }>(
        prepared.settings.DATABASE_URL,
        'SELECT id, callback_url FROM subscription',
      );
      const paths = new Map(subscriptions.map((row) => [row.id, new URL(row.callback_url).pathname]));
      return new Set(keys.map((key) => key.split(':')).map(([of = '', to = '']) => arrival(of, paths.get(to) ?? to)));
    } finally {
      process.kill(pid, 'SIGKILL');
    }
  }

  /**
   * @returns the deliveries that came a second time and may not, or a third time, when nothing is on its way any more
   */
  async function cameAgainBeside(mayComeAgain: Set<string>): Promise<string[]> {
    await eventually(async () => {
      const unfinished = await deliveries('1', `state IN ('queued', 'waiting', 'held', 'sending')`);
      return unfinished.length === 0;
    }, 'the end of all deliveries');
    const [arrived, may] = [new Set<string>(), new Set(mayComeAgain)];
    return receiver.arrivals.filter((each) => {
      const isFirst = !arrived.has(each);
      arrived.add(each);
      return !isFirst && !may.delete(each);
    });
  }

  /** To the receiver of this test: others have left theirs behind. */
  const deliveries = <Row extends Record<string, unknown>>(columns: string, which: string) =>
    queryOnce<Row>(
      prepared.settings.DATABASE_URL,
      `SELECT ${columns} FROM delivery JOIN subscription ON subscription.id = subscription_id
       WHERE callback_url LIKE '${receiver.url}%' AND ${which}`,
    );

  async function startAgain(): Promise<void> {
    logBegins = heraut.api.logs.length;
    await heraut.api.start('live');
    await bothListen();
  }

  /** One connection for each. @returns their ids */
  async function publishAlone(count: number): Promise<string[]> {
    const answers = await Promise.all(
      Array.from({ length: count }, () => heraut.tryToPublish(channel, {}, viaAlone())),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
    return answers.map(({ headers }) => headers.get('notification-id')!);
  }

  /**
   * Publishes one after the other. A process that is killed breaks off requests, and does not answer one that was on
   * its way to it: only a 201 is a promise.
   * @returns the ids
   */
  async function publishUntil(isOver: () => boolean): Promise<string[]> {
    const ids: string[] = [];
    await eventually(async () => {
      const answered = await heraut.tryToPublish(channel, {}, viaAlone(5000)).catch(() => undefined);
      if (answered?.status === 201) ids.push(answered.headers.get('notification-id')!);
      return isOver();
    }, 'the successor');
    return ids;
  }

  const viaAlone = (withinMs = 60_000) => viaApi({ headers: alone, signal: AbortSignal.timeout(withinMs) });

  function viaApi(also: CallOptions): HerautProcess {
    const { api } = heraut;
    return Object.assign(Object.create(api) as HerautProcess, {
      call: (method: string, path: string, options: CallOptions = {}) =>
        api.call(method, path, { ...options, ...also }),
    });
  }

  async function arrive(published: string[]): Promise<void> {
    const expected = published.map((id) => arrival(id, new URL(receiver.url).pathname));
    await eventually(() => expected.every((each) => receiver.arrivals.includes(each)), 'all of them to arrive');
  }

  /** A process that has not answered a scrape within a second is in it with what it had counted before. */
  const counts = (count: number) => eventually(async () => (await accepted()) === count, `the counts: ${count}`);
  const acceptedInAll = async () => {
    let last = await accepted();
    await eventually(async () => last === (last = await accepted()), 'the same counts twice');
    return last;
  };

  const accepted = (signal?: AbortSignal) => sample('heraut_publications_total', 'result="accepted"', signal);

  /** The sum of the samples with that name and label, in one scrape. */
  async function sample(name: string, label = '', signal?: AbortSignal): Promise<number> {
    const response = await fetch(`${adminUrl}/metrics`, { headers: alone, ...(signal ? { signal } : {}) });
    expect(response.status).toBe(200);
    const lines = (await response.text()).split('\n');
    return lines
      .filter((line) => line.startsWith(name) && /[ {]/.test(line[name.length] ?? '') && line.includes(label))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  }
});

describe('PROCESSES=2 that cannot start', () => {
  let prepared: PreparedStack;

  beforeAll(async () => {
    prepared = await real.prepare();
  });

  afterAll(() => prepared.release());

  /** @returns its output before it ends by itself */
  async function refusal(settings: Record<string, string>): Promise<string> {
    const started = HerautProcess.start({ settings: { ...prepared.settings, PROCESSES: '2', ...settings } });
    return started.then(
      () => 'it has started',
      (error: Error) => error.message,
    );
  }

  it('says once that a setting is wrong', async () => {
    const message = await refusal({ LOG_LEVEL: 'loud' });
    expect(message.match(/LOG_LEVEL/g)).toHaveLength(1);
    expect(message).not.toContain('supervisor.started');
  });

  it('says once that the database is out of reach, and ends', async () => {
    const message = await refusal({ DATABASE_URL: `postgres://heraut@127.0.0.1:${await freePort()}/none` });
    expect(message.match(/ECONNREFUSED/g)!.length).toBeGreaterThan(0);
    expect(message).toContain('supervisor.stopped');
    expect(message).not.toContain('startsAgainInMs');
  });

  it('says that the port is in use, and ends', async () => {
    const other = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };
    // By then it listens on the other one.
    const message = await refusal({ PORT: String(port), ADMIN_PORT: '0' });
    expect(message).toContain('EADDRINUSE');
    expect(message).toContain('end it, or set PORT to a port that is free.\n');
    expect(message).not.toContain('    at ');
    expect(message).toContain('supervisor.stopped');
    other.close();
  });
});
