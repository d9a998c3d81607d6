import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { callerIn, currentAuthor } from '../audit/author.js';
import { readBack } from '../infra/http/read-back.js';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { SharedRuns } from '../infra/shared-runs.js';
import { statement } from '../infra/postgres/statement.js';
import { catalogueAge } from './catalogue.metrics.js';

/** One kind of entry of the catalogue, kept in memory: channels, subscriptions, applications, the retry policy. */
export interface CatalogueDirectory {
  /**
   * Reads every row that was changed after the version `known`, tombstones included, into memory. After 0 these are all
   * rows: what is in memory and not among them is forgotten, and no sooner, since somebody may be about to look for it.
   */
  refresh(known: number): Promise<void>;
}

const readVersion = statement('catalogue-version', 'SELECT version FROM catalogue');

const pollIntervalMs = 1000;

/** The rollback keeps a call that changes nothing from raising the version. */
class NothingToChange extends Error {}

/**
 * The data that rarely change and every process needs all the time, kept in memory under one version.
 *
 * Every change raises the version in its own transaction, and the row lock of that update makes changes commit in the
 * order of their versions. Code that must not act on an outdated catalogue compares versions: the accepting statement
 * does (docs/decisions/0004), and a chunk of deliveries names the version it was matched with.
 */
@Injectable()
export class Catalogue implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(Catalogue.name);
  private readonly directories: CatalogueDirectory[] = [];
  private known = 0;
  private looksWithNews = 0;
  private readonly looks = new SharedRuns(() => this.look());
  private poll: NodeJS.Timeout | undefined;
  private readonly polls = new RepeatedFailures(this.logger, {
    failed: { event: 'catalogue.refresh-failed' },
    worksAgain: { event: 'catalogue.refresh-works-again' },
  });

  constructor(private readonly postgres: Postgres) {}

  /** Every change up to this version is in memory. */
  get version(): number {
    return this.known;
  }

  /**
   * Another number whenever something else was read into memory, also where the database went back and came to the same
   * version again.
   */
  get edition(): number {
    return this.looksWithNews;
  }

  register(directory: CatalogueDirectory): void {
    this.directories.push(directory);
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.refresh();
    this.poll = setInterval(() => void this.polls.note(this.refresh()), pollIntervalMs).unref();
  }

  onModuleDestroy(): void {
    clearInterval(this.poll);
  }

  /** Resolves when everything committed before the call is in memory. Calls that arrive together share one read. */
  refresh(): Promise<void> {
    return this.looks.request();
  }

  /**
   * Resolves when `version` is in memory.
   * @param than that memory had, when the database was found to be at `version`. A higher one: the database went back
   */
  async reach(version: number, than = version): Promise<void> {
    if (this.known < version || version < than) await this.refresh();
  }

  /**
   * Runs `work` in a transaction that raises the version; each row it touches must be given that `version`. Resolves
   * when the change is committed and in this process's memory. A throw in `work` changes nothing. After a deadlock
   * `work` runs again, so it must change nothing but the database.
   * @param committed is told of the result as soon as it is committed, also where this process cannot read it then
   * @throws {TooManyRequestsProblem} where too many changes of the author of the request wait already
   * @throws {UnavailableProblem} where those of others are carried out first, for too long
   * @throws {MaybeDoneProblem} where the change is committed, and cannot be read
   * @throws an error of Postgres; where the change may be committed it says so (`isCommitInDoubt`)
   */
  async change<T>(
    work: (manager: EntityManager, version: number) => Promise<T>,
    committed: (result: T) => void = () => {},
  ): Promise<T> {
    const raise = async (manager: EntityManager) => {
      const [rows] = (await manager.query('UPDATE catalogue SET version = version + 1 RETURNING version')) as [
        { version: string }[],
        number,
      ];
      return work(manager, Number(rows[0]!.version));
    };
    const change = () => this.postgres.entityTransaction(raise);
    const author = currentAuthor();
    const result = await (author ? this.postgres.turns.changes.run(callerIn(author), change) : change());
    committed(result);
    await readBack(() => this.refresh());
    return result;
  }

  /**
   * As `change`, for one that may turn out to change nothing: where `work` returns undefined, all of it is undone, and
   * the version stays as it is.
   */
  async changeIfNeeded<T>(
    work: (manager: EntityManager, version: number) => Promise<T | undefined>,
    committed?: (result: T) => void,
  ): Promise<T | undefined> {
    const orUndo = async (manager: EntityManager, version: number) => {
      const result = await work(manager, version);
      if (result === undefined) throw new NothingToChange();
      return result;
    };
    try {
      return await this.change(orUndo, committed);
    } catch (error) {
      if (error instanceof NothingToChange) return undefined;
      throw error;
    }
  }

  private async look(): Promise<void> {
    const rows = await this.postgres.query<{ version: string }>(readVersion);
    const version = Number(rows[0]!.version);
    if (version < this.known) {
      // Behind a restored backup or a standby that had not got everything: changes that memory has are not there, and
      // other ones may come to the same versions. At 0, nothing is accepted by this memory until all is read again
      // (docs/decisions/0077).
      this.logger.warn({ event: 'catalogue.went-back', from: this.known, to: version });
      this.known = 0;
    }
    // Rows newer than `version` may come along; they are read again next time, which does no harm.
    if (version !== this.known) {
      // Also where that fails in the middle: what was read so far is in memory.
      this.looksWithNews++;
      const reads = this.directories.map((directory) => directory.refresh(this.known));
      // A read that outlasts its look could put back what the next look has read anew.
      await Promise.allSettled(reads);
      await Promise.all(reads);
      this.looksWithNews++;
    }
    this.known = version;
    catalogueAge.renew();
  }
}
