import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { Catalogue, type CatalogueShelf } from '../../src/catalogue/catalogue.service.js';
import { readSettings } from '../../src/config/settings.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { eventually } from '../support/eventually.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

/** Channels by name, with nothing but what a shelf needs; the test can hold up or break its look. */
class Shelf implements CatalogueShelf {
  readonly names = new Set<string>();
  readonly looks: number[] = [];
  hold: Promise<void> | undefined;
  failure: Error | undefined;

  constructor(private readonly postgres: Postgres) {}

  async refresh(revision: number): Promise<void> {
    this.looks.push(revision);
    await this.hold;
    if (this.failure) throw this.failure;
    const rows = await this.postgres.query<{ name: string }>(
      { name: 'shelf', text: 'SELECT name FROM channel WHERE revision > $1' },
      [revision],
    );
    for (const { name } of rows) this.names.add(name);
  }
}

describe.each(stacks)('the catalogue on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let postgres: Postgres;
  let catalogue: Catalogue;
  let shelf: Shelf;

  beforeAll(async () => {
    prepared = await stack.prepare();
    postgres = await Postgres.open(readSettings(prepared.settings), []);
    await postgres.migrate();
  });
  beforeEach(async () => {
    await postgres.dataSource.query('TRUNCATE channel');
    catalogue = new Catalogue(postgres);
    shelf = new Shelf(postgres);
    catalogue.register(shelf);
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
    return to.change(async (manager, revision) => {
      await manager.query(
        `INSERT INTO channel (id, name, documentation_link, filters, revision) VALUES ($1, $2, '', '{}', $3)`,
        [randomUUID(), name, revision],
      );
      if (fail) throw new Error('changed its mind');
      return revision;
    });
  }

  it('rises with every change, and has it in memory when the change is through', async () => {
    const before = catalogue.version;
    expect(await add('first')).toBe(before + 1);
    expect(catalogue.version).toBe(before + 1);
    expect(shelf.names).toEqual(new Set(['first']));
    await add('second');
    expect(shelf.looks.at(-1)).toBe(before + 1); // read only what was new
  });

  it('neither rises nor changes when a change fails', async () => {
    const before = catalogue.version;
    await expect(add('never', catalogue, true)).rejects.toThrow('changed its mind');
    await catalogue.refresh();
    expect(catalogue.version).toBe(before);
    expect(shelf.names.size).toBe(0);
  });

  it('gives changes that come together versions of their own', async () => {
    const before = catalogue.version;
    const versions = await Promise.all(Array.from({ length: 10 }, (_, nr) => add(`nr ${nr}`)));
    expect(versions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, nr) => before + 1 + nr));
    expect(catalogue.version).toBe(before + 10);
    expect(shelf.names.size).toBe(10);
  });

  it('looks once for all who ask together, and once more for those who came during a look', async () => {
    await postgres.dataSource.query('UPDATE catalogue SET version = version + 1');
    let letGo = () => {};
    shelf.hold = new Promise((resolve) => (letGo = resolve));
    shelf.looks.length = 0;
    const first = catalogue.refresh();
    await eventually(() => shelf.looks.length === 1);
    // Committed after the look under way had read the version.
    await postgres.dataSource.query('UPDATE catalogue SET version = version + 1');
    const others = Array.from({ length: 20 }, () => catalogue.refresh());
    letGo();
    await first;
    await Promise.all(others);
    expect(shelf.looks).toHaveLength(2);
    const [row] = (await postgres.dataSource.query('SELECT version FROM catalogue')) as [{ version: string }];
    expect(catalogue.version).toBe(Number(row.version));
  });

  it('does not look at the shelves while nothing has changed', async () => {
    shelf.looks.length = 0;
    await Promise.all([catalogue.refresh(), catalogue.refresh()]);
    await catalogue.reach(catalogue.version);
    expect(shelf.looks).toEqual([]);
  });

  it('stays at its version when a look fails, and gets there with the next', async () => {
    const before = catalogue.version;
    shelf.failure = new Error('no answer');
    await expect(add('late')).rejects.toThrow('no answer');
    expect(catalogue.version).toBe(before);
    shelf.failure = undefined;
    await catalogue.reach(before + 1);
    expect(catalogue.version).toBe(before + 1);
    expect(shelf.names).toEqual(new Set(['late']));
  });

  it('does not look for ever for a version that does not exist', async () => {
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
      const shelf = new Shelf(postgres);
      catalogue.register(shelf);
      await catalogue.onApplicationBootstrap();
      const change = (name: string) =>
        catalogue.change(async (manager, revision) => {
          await manager.query(
            `INSERT INTO channel (id, name, documentation_link, filters, revision) VALUES ($1, $2, '', '{}', $3)`,
            [randomUUID(), name, revision],
          );
          return revision;
        });
      return { postgres, catalogue, shelf, change };
    };
    const [one, other] = [await open(), await open()];
    for (let round = 0; round < 20; round++) {
      const version = await one.change(`round ${round}`);
      await other.catalogue.reach(version);
      expect(other.shelf.names.has(`round ${round}`)).toBe(true);
    }
    const versions = await Promise.all(
      Array.from({ length: 20 }, (_, nr) => (nr % 2 === 0 ? one : other).change(`both ${nr}`)),
    );
    expect(new Set(versions).size).toBe(20);
    await one.change('unasked');
    await eventually(() => other.shelf.names.has('unasked'));
    for (const { catalogue, postgres } of [one, other]) {
      catalogue.onModuleDestroy();
      await postgres.close();
    }
    await prepared.release();
  });
});
