import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { systemClock, type Clock } from '../../src/infra/clock.js';
import type { Statement, Values } from '../../src/infra/postgres/statement.js';
import { postgresWorks } from '../../src/health/part-checks.js';
import { LiveListeners } from '../../src/live-events/live-listeners.service.js';
import { deadProcesses, Heartbeat } from '../../src/liveness/heartbeat.service.js';
import { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import { eventually } from '../support/eventually.js';
import { TestLedger } from '../support/ledger.js';
import { real, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

// Several processes are needed to judge one another; of an embedded database there is only one.
describe('a process whose row has expired', () => {
  let prepared: PreparedStack;
  let test: TestLedger;
  let expired: string;

  beforeAll(async () => {
    prepared = await real.prepare();
    test = await TestLedger.open(prepared.settings);
  });
  afterAll(async () => {
    await test.close();
    await prepared.release();
  });
  beforeEach(async () => {
    await test.heartbeat.onApplicationBootstrap();
    await test.heartbeat.stop(); // from here on it beats when a test says so
    const process = await test.startProcess();
    await process.die();
    expired = process.id;
  });
  afterEach(() => test.sql('DELETE FROM process'));

  /** Another process, alive for an hour until its last beat. */
  const lastBeatOfOther = (agoMs: number) =>
    test.sql(
      `UPDATE process SET expires_at = now() + (10000 - $2::int) * interval '1 ms', steady_since = now() - interval '1 hour'
       WHERE id = $1`,
      [test.heartbeat.processId, agoMs],
    );
  const otherBeats = async () => {
    await test.heartbeat.onApplicationBootstrap();
    return { stop: () => test.heartbeat.stop() };
  };
  const dead = async () => (await test.sql<{ dead: string[] }>(`SELECT ${deadProcesses} AS dead`))[0]!.dead;

  it('is dead when another one has beaten all that time', async () => {
    await lastBeatOfOther(0);
    expect(await dead()).toEqual([expired]);
    const other = await otherBeats();
    expect(await dead()).toEqual([expired]);
    await other.stop();
  });

  it('is dead also where its row was written before Postgres’ clock was set back, once others have beaten since', async () => {
    await test.sql(
      `UPDATE process SET expires_at = now() + interval '2 hours', steady_since = now() - interval '1 day'`,
    );
    expect(await dead()).toEqual([]); // nobody has
    expect(await test.heartbeat.isAlive('worker')).toBe(false);
    const other = await otherBeats();
    expect(await dead()).toEqual([]); // the others would be dead too
    await test.sql(`UPDATE process SET steady_since = now() - interval '10 s' WHERE id = $1`, [
      test.heartbeat.processId,
    ]);
    expect(await dead()).toEqual([expired]);
    await other.stop();
  });

  it('is not dead when the row of the other has merely not expired yet: Postgres was out of reach of both', async () => {
    await lastBeatOfOther(9000);
    expect(await dead()).toEqual([]);
  });

  it('is not dead when the other has reached Postgres again just before its own row expired', async () => {
    await lastBeatOfOther(9000);
    const other = await otherBeats();
    expect(await dead()).toEqual([]);
    await other.stop();
  });

  it('is dead at once when it is noted that it has ended, after its locks were given up', async () => {
    await lastBeatOfOther(9000);
    const deadBefore: string[][] = [];
    test.heartbeat.beforeNotedEnd(async (process) => {
      expect(process).toBe(expired);
      deadBefore.push(await dead());
    });
    await test.heartbeat.noteEnd(expired);
    expect(deadBefore).toEqual([[]]);
    expect(await dead()).toEqual([expired]);
  });

  const isKnown = async () => (await test.sql('SELECT FROM process WHERE id = $1', [expired])).length === 1;

  it('is not forgotten in the minute after its end: Postgres may still carry out what it had asked for', async () => {
    await test.heartbeat.noteEnd(expired);
    await test.heartbeat.sweep();
    expect(await isKnown()).toBe(true);
    await test.sql(`UPDATE process SET steady_since = steady_since - interval '1 minute' WHERE id = $1`, [expired]);
    await test.heartbeat.sweep();
    expect(await isKnown()).toBe(false);
  });

  it('is not forgotten while Postgres may carry out what it had asked for by its DATABASE_TIMEOUT', async () => {
    await test.heartbeat.noteEnd(expired);
    const ago = (time: string) =>
      test.sql(`UPDATE process SET database_timeout = 60, steady_since = now() - interval '${time}' WHERE id = $1`, [
        expired,
      ]);
    await ago('4 minutes');
    await test.heartbeat.sweep();
    expect(await isKnown()).toBe(true);
    await ago('5 minutes');
    await test.heartbeat.sweep();
    expect(await isKnown()).toBe(false);
  });

  it('is not forgotten before it is dead', async () => {
    await test.sql(
      `UPDATE process SET expires_at = now() - interval '1 hour', steady_since = now() - interval '2 hours' WHERE id = $1`,
      [expired],
    );
    await test.heartbeat.sweep();
    expect(await isKnown()).toBe(true);
    const other = await test.startProcess();
    await other.witness();
    await test.heartbeat.sweep();
    expect(await isKnown()).toBe(false);
  });
});

describe('a process that could not write its heartbeat for as long as it counts', () => {
  it('says so by its health, although Postgres answers', async () => {
    const prepared = await real.prepare();
    const test = await TestLedger.open(prepared.settings);
    let passedMs = 0;
    const clock: Clock = { now: () => passedMs, pause: () => Promise.resolve() };
    const heartbeat = new Heartbeat(test.postgres, test.config, clock, new LedgerClock(test.postgres, clock));
    const { check } = postgresWorks(test.postgres, heartbeat);
    await heartbeat.onApplicationBootstrap();
    await heartbeat.stop(); // from here on it does not beat
    passedMs = 9999;
    await check();
    passedMs = 10_000;
    await expect(check()).rejects.toThrow('could not write its heartbeat');
    await test.close();
    await prepared.release();
  });
});

describe('a process in which somebody begins to listen to live events', () => {
  it('knows it, although a heartbeat from before that is answered after it', async () => {
    const prepared = await real.prepare();
    const test = await TestLedger.open(prepared.settings);
    let letGo: (() => void) | undefined;
    const query = async (asked: Statement, values?: Values) => {
      const rows = await test.postgres.query(asked, values);
      if (asked.name === 'heartbeat') await new Promise<void>((resolve) => (letGo = resolve));
      return rows;
    };
    const slow = Object.create(test.postgres, { query: { value: query } }) as typeof test.postgres;
    const heartbeat = new Heartbeat(slow, test.config, systemClock, new LedgerClock(slow, systemClock));
    const beating = heartbeat.onApplicationBootstrap();
    await eventually(() => letGo, 'the heartbeat to be written');
    await new LiveListeners(test.postgres, heartbeat).prepare('somebody');
    letGo!();
    await beating;
    expect(heartbeat.isListenedTo).toBe(true);
    await heartbeat.stop();
    await test.close();
    await prepared.release();
  });
});

describe('a process that sends fresh deliveries', () => {
  let prepared: PreparedStack;
  let test: TestLedger;
  let teller: Heartbeat;
  let passedMs = 0;

  beforeAll(async () => {
    prepared = await real.prepare();
    test = await TestLedger.open(prepared.settings);
    const clock: Clock = {
      now: () => passedMs,
      pause: (ms, signal) => systemClock.pause(ms, signal),
    };
    teller = new Heartbeat(test.postgres, test.config, clock, new LedgerClock(test.postgres, clock));
  });
  afterAll(async () => {
    await teller.stop();
    await test.close();
    await prepared.release();
  });

  const isOtherTold = async () => {
    const other = new Heartbeat(test.postgres, test.config, systemClock, new LedgerClock(test.postgres, systemClock));
    await other.onApplicationBootstrap();
    await other.stop();
    return other.isOtherFresh;
  };

  it('tells the others, until a beat comes a second after the last of them', async () => {
    teller.noteFresh();
    await teller.onApplicationBootstrap();
    expect(await isOtherTold()).toBe(true);
    passedMs = 1000;
    const saysOtherwise = () => test.sql('SELECT FROM process WHERE id = $1 AND fresh_at IS NULL', [teller.processId]);
    await eventually(async () => (await saysOtherwise()).length === 1, 'the next beat');
    expect(await isOtherTold()).toBe(false);
  });

  it('tells the others its DATABASE_TIMEOUT, of which each takes the longest', async () => {
    const beatOnce = async (databaseTimeout: number) => {
      const config = { settings: { ...test.config.settings, DATABASE_TIMEOUT: databaseTimeout } };
      const one = new Heartbeat(test.postgres, config, systemClock, new LedgerClock(test.postgres, systemClock));
      await one.onApplicationBootstrap();
      await one.stop();
      return one.longestTimeout;
    };
    expect([await beatOnce(16), await beatOnce(60), await beatOnce(17)]).toEqual([16, 60, 60]);
  });
});
