import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { Catalogue, type CatalogueDirectory } from '../../src/catalogue/catalogue.service.js';
import { readSettings } from '../../src/config/settings.js';
import { MaybeDoneProblem } from '../../src/infra/http/problem.js';
import { toProblem } from '../../src/infra/http/to-problem.js';
import { isCommitInDoubt } from '../../src/infra/postgres/commit-in-doubt.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { statement } from '../../src/infra/postgres/statement.js';
import { eventually } from '../support/eventually.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

const readNames = statement('channel-names', 'SELECT name FROM channel WHERE version > $known');

/** Channels by name, the smallest directory; the test can delay its refresh or make it fail. */
class ChannelNames implements CatalogueDirectory {
  readonly names = new Set<string>();
  /** The version that was known at each refresh. */
  readonly refreshedFrom: number[] = [];
  hold: Promise<void> | undefined;
  failure: Error | undefined;
  underWay = 0;

  constructor(private readonly postgres: Postgres) {}

  async refresh(known: number): Promise<void> {
    this.refreshedFrom.push(known);
    this.underWay++;
    try {
      await this.read(known);
    } finally {
      this.underWay--;
    }
  }

  private async read(known: number): Promise<void> {
    await this.hold;
    if (this.failure) throw this.failure;
    const rows = await this.postgres.query<{ name: string }>(readNames, { known });
    if (known === 0) this.names.clear();
    for (const { name } of rows) this.names.add(name);
  }
}

describe.each(stacks)('the catalogue on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let postgres: Postgres;
  let catalogue: Catalogue;
  let directory: ChannelNames;

  beforeAll(async () => {
    prepared = await stack.prepare();
    postgres = await Postgres.open(readSettings(prepared.settings), []);
    await postgres.migrate();
  });
  beforeEach(async () => {
    await postgres.dataSource.query('TRUNCATE channel');
    catalogue = new Catalogue(postgres);
    directory = new ChannelNames(postgres);
    catalogue.register(directory);
    await catalogue.onApplicationBootstrap();
  });
  afterEach(() => {
    catalogue.onModuleDestroy();
  });
  afterAll(async () => {
    await postgres.close();
    await prepared.release();
  });

  function add(name: string, to = catalogue, fail = false): Promise<number> {
    return to.change(async (manager, version) => {
      await manager.query(
        `INSERT INTO channel (id, name, documentation_link, filters, version) VALUES ($1, $2, '', '{}', $3)`,
        [randomUUID(), name, version],
      );
      if (fail) throw new Error('changed its mind');
      return version;
    });
  }

  it('rises with every change, and has it in memory when the change is done', async () => {
    const before = catalogue.version;
    expect(await add('first')).toBe(before + 1);
    expect(catalogue.version).toBe(before + 1);
    expect(directory.names).toEqual(new Set(['first']));
    await add('second');
    expect(directory.refreshedFrom.at(-1)).toBe(before + 1); // read only what was new
  });

  it('neither rises nor changes when a change fails', async () => {
    const before = catalogue.version;
    await expect(add('never', catalogue, true)).rejects.toThrow('changed its mind');
    await catalogue.refresh();
    expect(catalogue.version).toBe(before);
    expect(directory.names.size).toBe(0);
  });

  it('gives changes that come together versions of their own', async () => {
    const before = catalogue.version;
    const versions = await Promise.all(Array.from({ length: 10 }, (_, nr) => add(`nr ${nr}`)));
    expect(versions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, nr) => before + 1 + nr));
    expect(catalogue.version).toBe(before + 10);
    expect(directory.names.size).toBe(10);
  });

  it('reads once for all that ask together, and once more for those that asked during a refresh', async () => {
    await postgres.dataSource.query('UPDATE catalogue SET version = version + 1');
    let letGo = () => {};
    directory.hold = new Promise((resolve) => (letGo = resolve));
    directory.refreshedFrom.length = 0;
    const first = catalogue.refresh();
    await eventually(() => directory.refreshedFrom.length === 1);
    // Committed after the refresh under way had read the version.
    await postgres.dataSource.query('UPDATE catalogue SET version = version + 1');
    const others = Array.from({ length: 20 }, () => catalogue.refresh());
    letGo();
    await first;
    await Promise.all(others);
    expect(directory.refreshedFrom).toHaveLength(2);
    const [row] = (await postgres.dataSource.query('SELECT version FROM catalogue')) as [{ version: string }];
    expect(catalogue.version).toBe(Number(row.version));
  });

  it('does not refresh its directories while nothing has changed', async () => {
    directory.refreshedFrom.length = 0;
    await Promise.all([catalogue.refresh(), catalogue.refresh()]);
    await catalogue.reach(catalogue.version);
    expect(directory.refreshedFrom).toEqual([]);
  });

  it('stays at its version when a refresh fails, and gets there with the next', async () => {
    const before = catalogue.version;
    directory.failure = new Error('no answer');
    await expect(add('late')).rejects.toThrow('may have been done');
    expect(catalogue.version).toBe(before);
    directory.failure = undefined;
    await catalogue.reach(before + 1);
    expect(catalogue.version).toBe(before + 1);
    expect(directory.names).toEqual(new Set(['late']));
  });

  it('has ended every read when a refresh fails, so that none can put back what the next one has read', async () => {
    await add('first');
    const failing = new ChannelNames(postgres);
    catalogue.register(failing);
    failing.failure = new Error('no answer');
    let letGo = () => {};
    directory.hold = new Promise((resolve) => (letGo = resolve));
    await postgres.dataSource.query('UPDATE catalogue SET version = version + 1');
    const underWayAtEnd = catalogue.refresh().then(
      () => 'no failure',
      () => directory.underWay,
    );
    await eventually(() => failing.refreshedFrom.length > 0);
    expect(directory.underWay).toBe(1);
    letGo();
    expect(await underWayAtEnd).toBe(0);
  });

  /**
   * As a backup has it, or a standby that had not got the last `changes`: those are gone, and their versions are to
   * come.
   */
  async function goBack(changes: number): Promise<number> {
    await postgres.dataSource.query(
      'DELETE FROM channel WHERE version > (SELECT version FROM catalogue) - $1::bigint',
      [changes],
    );
    await postgres.dataSource.query('UPDATE catalogue SET version = version - $1::bigint', [changes]);
    return catalogue.version - changes;
  }

  it('is read from nothing when the database has gone back, and what is not there any more is forgotten', async () => {
    await add('kept');
    await add('lost');
    await add('lost, too');
    const before = await goBack(2);
    await catalogue.refresh();
    expect(directory.refreshedFrom.at(-1)).toBe(0);
    expect(directory.names).toEqual(new Set(['kept']));
    expect(catalogue.version).toBe(before);
    // The version of a change that was lost.
    expect(await add('other')).toBe(before + 1);
    expect(directory.refreshedFrom.at(-1)).toBe(before);
    expect(directory.names).toEqual(new Set(['kept', 'other']));
  });

  it('has no version that the database could have while it is read again from nothing, also when that fails', async () => {
    await add('kept');
    await add('lost');
    const before = await goBack(1);
    directory.failure = new Error('no answer');
    await expect(catalogue.refresh()).rejects.toThrow('no answer');
    expect([catalogue.version, directory.names.has('kept')]).toEqual([0, true]);
    directory.failure = undefined;
    await catalogue.reach(before);
    expect([catalogue.version, directory.names]).toEqual([before, new Set(['kept'])]);
  });

  it('is read again when it was found at a lower version than the one that was counted on, not for an older one', async () => {
    await add('kept');
    await add('lost');
    const lost = catalogue.version;
    const before = await goBack(1);
    directory.refreshedFrom.length = 0;
    await catalogue.reach(before); // of a chunk that was matched before the last change, perhaps
    expect(directory.refreshedFrom).toEqual([]);
    await catalogue.reach(before, lost);
    expect(directory.names).toEqual(new Set(['kept']));
  });

  it('says that a change may have been done where its commit was not answered, and not where it was refused', async () => {
    const commitFails = (after: boolean, failure: Error) =>
      catalogue.change(async (manager, version) => {
        await manager.query(
          `INSERT INTO channel (id, name, documentation_link, filters, version) VALUES ($1, $2, '', '{}', $3)`,
          [randomUUID(), failure.message, version],
        );
        const runner = manager.queryRunner!;
        const commit = runner.commitTransaction.bind(runner);
        runner.commitTransaction = async () => {
          if (after) await commit();
          throw failure;
        };
      });
    const [lost, ended] = ['Connection terminated unexpectedly', 'terminating connection'];
    await expect(commitFails(true, new Error(lost))).rejects.toSatisfy(isCommitInDoubt);
    const byPostgres = Object.assign(new Error(ended), { code: '57P01' });
    await expect(commitFails(true, byPostgres)).rejects.toSatisfy(isCommitInDoubt);
    expect(toProblem(byPostgres)).toBeInstanceOf(MaybeDoneProblem);
    const refusal = Object.assign(new Error('refused'), { code: '40001' });
    await expect(commitFails(false, refusal)).rejects.toBe(refusal);
    expect(isCommitInDoubt(refusal)).toBe(false);
    await catalogue.refresh();
    expect(directory.names).toEqual(new Set([lost, ended]));
  });

  it('tells of a change that is committed, also where it cannot be read', async () => {
    const told: string[] = [];
    const change = (result: string) =>
      catalogue.change(
        async () => result,
        (done) => told.push(done),
      );
    await change('one');
    directory.failure = new Error('no answer');
    await expect(change('two')).rejects.toThrow('may have been done');
    directory.failure = undefined;
    const failed = catalogue.change(
      () => Promise.reject(new Error('changed its mind')),
      () => told.push('three'),
    );
    await expect(failed).rejects.toThrow('changed its mind');
    expect(told).toEqual(['one', 'two']);
  });

  it('does not wait for ever for a version that does not exist', async () => {
    await catalogue.reach(1_000_000);
    expect(catalogue.version).toBeLessThan(1_000_000);
  });
});

describe('the catalogue of two processes', () => {
  it('is that of the other as soon as it is asked for, and by itself within seconds', async () => {
    const prepared = await stacks.find(({ name }) => name === 'real')!.prepare();
    const open = async () => {
      const postgres = await Postgres.open(readSettings(prepared.settings), []);
      await postgres.migrate();
      const catalogue = new Catalogue(postgres);
      const directory = new ChannelNames(postgres);
      catalogue.register(directory);
      await catalogue.onApplicationBootstrap();
      const change = (name: string) =>
        catalogue.change(async (manager, version) => {
          await manager.query(
            `INSERT INTO channel (id, name, documentation_link, filters, version) VALUES ($1, $2, '', '{}', $3)`,
            [randomUUID(), name, version],
          );
          return version;
        });
      return { postgres, catalogue, directory, change };
    };
    const [one, other] = [await open(), await open()];
    for (let round = 0; round < 20; round++) {
      const version = await one.change(`round ${round}`);
      await other.catalogue.reach(version);
      expect(other.directory.names.has(`round ${round}`)).toBe(true);
    }
    const versions = await Promise.all(
      Array.from({ length: 20 }, (_, nr) => (nr % 2 === 0 ? one : other).change(`both ${nr}`)),
    );
    expect(new Set(versions).size).toBe(20);
    await one.change('unasked');
    await eventually(() => other.directory.names.has('unasked'));
    for (const { catalogue, postgres } of [one, other]) {
      catalogue.onModuleDestroy();
      await postgres.close();
    }
    await prepared.release();
  });
});
