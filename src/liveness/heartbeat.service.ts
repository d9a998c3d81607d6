import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Config } from '../config/config.module.js';
import type { Role } from '../config/server-settings.js';
import { Clock } from '../infra/clock.js';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { version } from '../infra/version.js';
import { LedgerClock, nowMs } from './ledger-clock.service.js';

const intervalMs = 2000;
/** Four beats may be lost before other processes free the deliveries that this one had in hand. */
const lifetimeMs = 10_000;
/**
 * A process whose last beat is longer ago may itself not have reached Postgres: it does not show that others could
 * have.
 */
const recentMs = lifetimeMs / 2;
/** A process counts as one that sends deliveries as they are accepted for so long after the last of these. */
export const freshForMs = 1000;
/**
 * The last beat of a process that beats no more counts for so long. Longer than two beats: that of the process that
 * tells, and that of the one that is told.
 */
const toldForMs = 5000;
/**
 * No row says that it expires later than this: Postgres' clock was set back since, or a standby with a clock that is
 * behind was promoted. An hour more, because a transaction sees what was written after its own now(), and a living
 * process must never be taken for dead by that.
 */
const notPlanned = `now() + interval '${lifetimeMs + 3_600_000} ms'`;
const beatRecently = `process.expires_at > now() + interval '${lifetimeMs - recentMs} ms' AND process.expires_at <= ${notPlanned}`;
/** Of a row of `process`: it has shown a sign of life within its lifetime. */
export const aliveNow = `expires_at > now() AND expires_at <= ${notPlanned}`;
/**
 * Seconds: the longest DATABASE_TIMEOUT of all processes that accept notifications, which differ while it is being
 * changed. Also of those that have ended: Postgres may still carry out what they asked for, until they are forgotten.
 * Null: none says so.
 */
export const longestTimeout = `(SELECT max(database_timeout) FROM process WHERE 'api' = ANY (roles))`;

const beat = statement(
  'heartbeat',
  `INSERT INTO process (id, roles, expires_at, steady_since, version, node, host, started_at, fresh_at,
     database_timeout)
   VALUES ($id, $roles, now() + $lifetime_ms * interval '1 ms', now(), $version, $node, $host,
     now() - $running_s * interval '1 s', CASE WHEN $is_fresh::boolean THEN now() END,
     $database_timeout)
   ON CONFLICT (id) DO UPDATE SET
     expires_at = EXCLUDED.expires_at,
     fresh_at = EXCLUDED.fresh_at,
     steady_since = CASE WHEN ${beatRecently} THEN process.steady_since ELSE now() END
   RETURNING ${nowMs},
             EXISTS (SELECT FROM live_listener WHERE expires_at > now()) AS is_listened_to,
             (SELECT count(*)::int FROM process WHERE 'worker' = ANY (roles) AND ${aliveNow}) AS workers,
             ${longestTimeout} AS longest_timeout,
             EXISTS (SELECT FROM process WHERE id <> $id AND fresh_at > now() - interval '${toldForMs} ms') AS is_other_fresh`,
);
/** It says so itself, or its supervisor does: nobody needs to wait, or to doubt it. */
const hasEnded = `expires_at = '-infinity'`;
/** From then on, `steady_since` says when that was. */
const end = statement('process-ended', `UPDATE process SET ${hasEnded}, steady_since = now() WHERE id = $id`);
/** Where it is known that none is alive. */
export const endAllProcesses = statement('processes-ended', `UPDATE process SET ${hasEnded}`);

/**
 * Whether some process has been seen alive for so long, without a gap, and still is: then Postgres was within reach of
 * others as well.
 * @param ms or the name of a parameter
 */
export const anySteadyFor = (ms: number | `$${string}`): string =>
  `EXISTS (SELECT FROM process WHERE ${beatRecently} AND steady_since <= now() - ${ms} * interval '1 ms')`;

/**
 * The ids of the processes that are dead, as an array for a statement. A process whose row has expired is dead only if
 * another one has been seen alive all that time, and still is: while Postgres is out of reach nobody can show signs of
 * life, and when it is back the first process to ask would find all others dead, whose deliveries are on their way. An
 * outage may end when the rows of some have expired and those of others have not; therefore a row that has not expired
 * yet proves nothing, only a recent beat does. After Postgres' clock was set back the rows of all lie ahead; each beats
 * within two seconds, and is seen to be steady ten seconds later.
 */
export const deadProcesses = `ARRAY(
  SELECT id FROM process WHERE ${hasEnded} OR (expires_at <= now() OR expires_at > ${notPlanned})
    AND ${anySteadyFor(lifetimeMs)}
)`;

/**
 * A dead process is forgotten when the ledger has nothing left that it had in hand, and after a minute and the
 * time for which Postgres may still carry out what one that was killed had asked for. Not by NOT EXISTS: as a join it
 * would read all that any process has in hand.
 */
export const sweep = statement(
  'sweep-processes',
  `DELETE FROM process p
   WHERE GREATEST(p.expires_at, p.steady_since) <= now() - interval '1 minute' - coalesce(p.database_timeout, 0) * interval '4 s'
     AND p.id = ANY (${deadProcesses})
     AND (SELECT d.process FROM delivery d WHERE d.process = p.id LIMIT 1) IS NULL`,
);

const countAlive = statement(
  'count-alive',
  `SELECT role, count(*)::int AS count FROM process, unnest(roles) AS role WHERE ${aliveNow} GROUP BY role`,
);

/** Those that ended themselves are left out. There may be many after as many ends: those that were heard of last. */
export const listItems = statement(
  'list-processes',
  `SELECT id, roles, version, node, host, started_at AS "startedAt", ${aliveNow} AS "isAlive",
     expires_at - interval '${lifetimeMs} ms' AS "heardAt"
   FROM process WHERE NOT ${hasEnded} ORDER BY expires_at DESC LIMIT $limit`,
);

/** A process that has not said that it ended. */
export interface ListedProcess {
  id: string;
  roles: Role[];
  /** Of Heraut. Null, like the next three: it is an older one, which does not say. */
  version: string | null;
  /** Version of Node. */
  node: string | null;
  host: string | null;
  startedAt: Date | null;
  /** False: its last sign of life is longer ago than its lifetime. */
  isAlive: boolean;
  /** Its last sign of life. */
  heardAt: Date;
}

/** Tells the other processes, through the table `process`, that this one is alive, and learns Postgres' time by it. */
@Injectable()
export class Heartbeat implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly processId = randomUUID();
  /** Whether anybody listens to live events, in any process (src/live-events), as of the last beat, or noted since. */
  isListenedTo = false;
  private listeningNotedAt = -Infinity;
  /**
   * Whether another process was delivering something as it was accepted when it last beat, as of the last beat of this
   * one.
   */
  isOtherFresh = false;
  /** Processes with the role `worker` that are alive, as of the last beat. */
  workers = 1;
  /** Whether there is any, as of the last beat; this process counts from its second one on. */
  isWorkerAlive = false;
  /** Seconds: the longest DATABASE_TIMEOUT of this process and of all that accept, as of the last beat. */
  longestTimeout: number;
  private freshAt = -Infinity;
  private readonly forgetting: ((process: string) => Promise<void>)[] = [];
  private readonly logger = new Logger(Heartbeat.name);
  private timer: NodeJS.Timeout | undefined;
  private readonly beats = new RepeatedFailures(this.logger, {
    failed: { event: 'heartbeat.failed' },
    worksAgain: { event: 'heartbeat.works-again' },
  });
  /** When the last beat was sent that reached Postgres. */
  private beatAt = -Infinity;

  constructor(
    private readonly postgres: Postgres,
    private readonly config: Config,
    private readonly clock: Clock,
    private readonly ledgerClock: LedgerClock,
  ) {
    this.longestTimeout = config.settings.DATABASE_TIMEOUT;
  }

  /** For half of its lifetime more, at least, no other process may take this one for dead. */
  get isSteady(): boolean {
    return this.clock.now() - this.beatAt < recentMs;
  }

  /** For as long as it counts without a beat it could not write one: others take it for dead by now. */
  get hasExpired(): boolean {
    return this.clock.now() - this.beatAt >= lifetimeMs;
  }

  /** This process delivers something as it was accepted: the next beat tells the others. */
  noteFresh(): void {
    this.freshAt = this.clock.now();
  }

  /** Postgres has just been told that somebody listens to live events. */
  noteListening(): void {
    this.listeningNotedAt = this.clock.now();
    this.isListenedTo = true;
  }

  async onApplicationBootstrap(): Promise<void> {
    // The directory lock proves that no other process is alive: the deliveries the last one had in hand are free at
    // once.
    if (this.postgres.isEmbedded) await this.postgres.query(endAllProcesses);
    await this.beat();
    this.timer = setInterval(() => void this.beats.note(this.beat()), intervalMs).unref();
  }

  /** Runs when this process has nothing in hand any more, and before the database is closed. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.stop().catch((error: unknown) => {
      this.logger.warn({ event: 'heartbeat.failed', error }); // its row expires, only later
    });
  }

  /** Ends the heartbeat: deliveries that this process still had may be handed out again at once. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.postgres.query(end, { id: this.processId });
  }

  /** @param forget must not reject; what another process has that ended is not handed out again before */
  beforeNotedEnd(forget: (process: string) => Promise<void>): void {
    this.forgetting.push(forget);
  }

  /** Another process has ended: what it had in hand may be handed out again at once. */
  async noteEnd(process: string): Promise<void> {
    await Promise.all(this.forgetting.map((forget) => forget(process)));
    await this.postgres.query(end, { id: process });
  }

  /** Whether any process with that role is alive. For health checks. */
  async isAlive(role: Role): Promise<boolean> {
    const alive = await this.postgres.checks.query<unknown[]>(
      `SELECT FROM process WHERE $1 = ANY (roles) AND ${aliveNow} LIMIT 1`,
      [role],
    );
    return alive.length > 0;
  }

  /** How many processes with each role are alive, in the whole installation. */
  async countAlive(): Promise<ReadonlyMap<Role, number>> {
    const rows = await this.postgres.query<{ role: Role; count: number }>(countAlive);
    return new Map(rows.map(({ role, count }) => [role, count]));
  }

  /** Those that are alive, and those that were not heard of any more. */
  list(limit: number): Promise<ListedProcess[]> {
    return this.postgres.queryAside<ListedProcess>(listItems, { limit });
  }

  /** Removes the rows of processes that ended long ago. */
  async sweep(): Promise<void> {
    await this.postgres.query(sweep);
  }

  private async beat(): Promise<void> {
    const sentAt = this.clock.now();
    const { ROLES: roles, DATABASE_TIMEOUT: ownTimeout } = this.config.settings;
    const [row] = await this.postgres.query<BeatRow>(beat, {
      id: this.processId,
      roles,
      lifetime_ms: lifetimeMs,
      version,
      node: process.versions.node,
      host: hostname(),
      running_s: process.uptime(),
      is_fresh: sentAt - this.freshAt < freshForMs,
      database_timeout: ownTimeout,
    });
    this.beatAt = sentAt;
    // A beat that was sent before somebody listened may be answered after it, and until the next one nothing would be
    // written for them.
    this.isListenedTo = row!.is_listened_to || this.listeningNotedAt >= sentAt;
    this.isOtherFresh = row!.is_other_fresh;
    this.workers = Math.max(1, row!.workers);
    this.longestTimeout = Math.max(ownTimeout, row!.longest_timeout ?? 0);
    this.isWorkerAlive = row!.workers > 0;
    this.ledgerClock.heard(Number(row!.now_ms), sentAt);
  }
}

interface BeatRow {
  now_ms: string;
  is_listened_to: boolean;
  is_other_fresh: boolean;
  workers: number;
  longest_timeout: number | null;
}
