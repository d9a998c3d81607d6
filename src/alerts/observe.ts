import type { Query } from '../infra/postgres/postgres.js';
import { readDatabaseSize } from '../ledger/measure-size.js';
import type { AlertRules } from './alert-rules.js';
import type { Observation } from './evaluate.js';
import type { OldestUnfinished } from '../ledger/oldest-unfinished.js';
import { readDead, readDue, readFailing, readOpenFor, readRoles } from './look.js';
import type { Memory } from './memory.js';
import { readNotMade } from './not-made.js';

/** To ask for the size reads the size of each file of the database. */
const measureEveryMs = 300_000;

/** Looks at the ledger, as far as the rules need it: each look is bounded, and served by an index. */
export async function observe(
  query: Query,
  rules: AlertRules,
  memory: Memory,
  unfinished: OldestUnfinished,
  now: Date,
  isEmbedded: boolean,
): Promise<Observation> {
  const {
    deadLetters,
    oldestDue,
    endpointOpen,
    backlogGrowing,
    roleMissing,
    ledgerDisk,
    subscriptionFailing,
    callsNotMade,
  } = rules;
  const mostDue = 2 * backlogGrowing.count;
  const due =
    oldestDue.isEnabled || backlogGrowing.isEnabled
      ? await readDue(query, unfinished, backlogGrowing.isEnabled ? mostDue : 0)
      : undefined;
  return {
    now,
    dead: deadLetters.isEnabled ? await readDead(query, memory.deadUpTo) : undefined,
    oldestDue: due?.oldest,
    failing: subscriptionFailing.isEnabled
      ? await readFailing(query, subscriptionFailing.afterSeconds, memory.failingUpTo)
      : undefined,
    notMade: callsNotMade.isEnabled ? await readNotMade(query, memory.notMadeUpTo) : undefined,
    openFor: endpointOpen.isEnabled ? await readOpenFor(query, endpointOpen.afterSeconds) : [],
    dueCount: due?.count ?? 0,
    mostDue,
    roles: roleMissing.isEnabled ? await readRoles(query) : new Set(),
    disk: ledgerDisk.isEnabled ? await disk(query, memory, now.getTime(), isEmbedded) : undefined,
  };
}

async function disk(
  query: Query,
  { disk: known }: Memory,
  at: number,
  isEmbedded: boolean,
): Promise<Observation['disk']> {
  // One that lies ahead is from before Postgres' clock was set back.
  if (known && known.at <= at && at - known.at < measureEveryMs) return known;
  return { at, bytes: await readDatabaseSize(query, isEmbedded) };
}
