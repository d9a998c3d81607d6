import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { ServerResponse } from 'node:http';
import { Config } from '../config/config.module.js';
import { FairPermits } from '../infra/fair-permits.js';
import { TooManyFetchesProblem } from '../infra/http/problem.js';
import { Postgres } from '../infra/postgres/postgres.js';

/**
 * Requests of a process that are not answered yet, most of which wait: each holds a connection. And those of one
 * application, and for one subscription, so that its subscriber does not take up all.
 */
const most = { underWay: 1000, ofApplication: 500, ofSubscription: 4 };
/**
 * Bytes of pages that callers have not taken yet, and of those of one application: a caller that does not read keeps
 * its page for a minute (`slow-callers.ts`).
 */
const mostBytesLent = { inAll: 256 * 1024 * 1024, ofApplication: 64 * 1024 * 1024 };
/**
 * Looks into the ledger at once, in a process. With the turns of callers (src/infra/postgres/connection-turns.ts) these
 * may be all connections of the rest: whatever else needs one waits for the end of a look, half a second as a rule.
 */
const mostLooks = 4;
const turnMs = 5000;
const retryAfterSeconds = 5;

/** A subscriber that fetches. */
export interface Fetcher {
  subscriptionId: string;
  clientId: string;
}

/** The part of an answer that tells when it was taken. */
type Lent = Pick<ServerResponse, 'destroyed' | 'once'>;

/** How many may fetch, and look into the ledger for that, so that others get on. */
@Injectable()
export class Fetches implements OnModuleDestroy {
  private underWay = 0;
  private readonly ofApplication = new Map<string, number>();
  private readonly ofSubscription = new Map<string, number>();
  private bytesLent = 0;
  private readonly bytesLentTo = new Map<string, number>();
  private readonly looks: FairPermits;
  private readonly inLine = new Set<AbortController>();
  private isStopping = false;

  constructor(postgres: Postgres, { settings }: Config) {
    const connections = postgres.isEmbedded ? 1 : settings.DATABASE_POOL_SIZE;
    const atOnce = Math.max(1, Math.min(mostLooks, Math.floor(connections / 2)));
    this.looks = new FairPermits({ atOnce, ofOne: Math.ceil(atOnce / 2) });
  }

  onModuleDestroy(): void {
    this.isStopping = true;
    for (const waiting of this.inLine) waiting.abort();
  }

  /**
   * Before anything is read for a request, also whether the abonnement is the caller's: so one that is refused costs
   * nothing, and those for one subscription are counted by their caller.
   * @throws {TooManyFetchesProblem}
   */
  async during<T>({ subscriptionId, clientId }: Fetcher, work: () => Promise<T>): Promise<T> {
    const ofBoth = JSON.stringify([subscriptionId, clientId]);
    const [ofSubscription, ofApplication] = [
      this.ofSubscription.get(ofBoth) ?? 0,
      this.ofApplication.get(clientId) ?? 0,
    ];
    if (ofSubscription >= most.ofSubscription) throw tooMany(`for this abonnement: ${most.ofSubscription} may be`);
    if (ofApplication >= most.ofApplication) throw tooMany(`of this application: ${most.ofApplication} may be`);
    if (this.underWay >= most.underWay) throw tooMany(`of all applications: ${most.underWay} may be`);
    const count = (by: 1 | -1) => {
      this.underWay += by;
      addTo(this.ofSubscription, ofBoth, by);
      addTo(this.ofApplication, clientId, by);
    };
    count(1);
    try {
      return await work();
    } finally {
      count(-1);
    }
  }

  /**
   * A page is about to be sent: its bytes count until it was taken, or the caller is gone.
   * @param connection of the answer
   * @throws {TooManyFetchesProblem} beside too many bytes of others: nothing is lost, since the cursor has not moved
   */
  lend(clientId: string, { length }: Buffer, connection: Lent): void {
    const own = this.bytesLentTo.get(clientId) ?? 0;
    if (own > 0 && own + length > mostBytesLent.ofApplication) throw notTaken('this application');
    if (this.bytesLent > 0 && this.bytesLent + length > mostBytesLent.inAll) throw notTaken('all applications');
    if (connection.destroyed) return;
    const count = (by: number) => {
      this.bytesLent += by;
      addTo(this.bytesLentTo, clientId, by);
    };
    count(length);
    connection.once('close', () => count(-length));
  }

  /**
   * Looks when it is this application's turn.
   * @param left the caller is gone
   * @returns undefined: the turn did not come, or has no sense any more
   */
  async inTurn<T>(clientId: string, left: AbortSignal, look: () => Promise<T>): Promise<T | undefined> {
    if (!(await this.hasTurn(clientId, left))) return undefined;
    try {
      return await look();
    } finally {
      this.looks.release(clientId);
    }
  }

  private async hasTurn(clientId: string, left: AbortSignal): Promise<boolean> {
    const gone = new AbortController();
    const leave = () => gone.abort();
    if (left.aborted || this.isStopping) return false;
    left.addEventListener('abort', leave);
    const timer = setTimeout(leave, turnMs);
    this.inLine.add(gone);
    try {
      return await this.looks.acquire(clientId, gone.signal);
    } finally {
      this.inLine.delete(gone);
      clearTimeout(timer);
      left.removeEventListener('abort', leave);
    }
  }
}

export const noTurn = (): TooManyFetchesProblem =>
  new TooManyFetchesProblem('Others are looked for first. Ask again later.', retryAfterSeconds);

const tooMany = (which: string): TooManyFetchesProblem =>
  new TooManyFetchesProblem(
    `Too many requests to fetch are under way ${which}. Ask again when one is answered.`,
    retryAfterSeconds,
  );

const notTaken = (whose: string): TooManyFetchesProblem =>
  new TooManyFetchesProblem(`Answers to requests of ${whose} to fetch have not been read yet.`, retryAfterSeconds);

function addTo(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
