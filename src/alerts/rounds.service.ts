import { Injectable, Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { ApplicationDirectory } from '../auth/application-directory.service.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { Postgres, type Query } from '../infra/postgres/postgres.js';
import { statement, type Values } from '../infra/postgres/statement.js';
import { OldestUnfinished } from '../ledger/oldest-unfinished.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import { AlertChannels } from './alert-channels.js';
import { forgetAlerts, markTold, openAlerts, readCurrent, resolveAlerts, updateAlerts } from './alert-rows.js';
import { readAlertRules } from './alert-rules-rows.js';
import { isOff, type RuleName } from './alert-rules.js';
import { keyOf, type Alert, type StoredAlert } from './alert.js';
import { notesCounted } from './alerts.metrics.js';
import { thisBuild } from './builds.js';
import { changesOf } from './changes.js';
import { evaluate } from './evaluate.js';
import { limitsToTell, type LeftOut } from './fair-share.js';
import type { Memory } from './memory.js';
import { forgetNotes, giveUpAfterMs, giveUpOld, insertNotes, leaseMs, readUnsent, tellAnew } from './note-rows.js';
import type { NoteChannel } from './note.js';
import { dueNow, writeNotes } from './notes-due.js';
import { Owners } from './owners.js';
import { observe } from './observe.js';

/**
 * The row's lock lasts as long as the round: every other process skips it. One that ended further ahead than another
 * transaction may have begun is past: Postgres' clock was set back since. Of builds that run beside each other the one
 * whose last round is longest ago comes first, however many processes the others have.
 */
const claimRound = statement(
  'alert-round-claim',
  `SELECT now() AS now, noted_at, memory FROM alert_round
   WHERE ended_at IS NULL OR ended_at > now() + interval '1 minute'
     OR ended_at <= now() - interval '1 ms' * ($pause_ms::float8 + $pause_per_build_ms::float8 * (
       SELECT count(*) FROM jsonb_each(memory -> 'builds') AS build
       WHERE (build.value ->> 'at')::float8 < (memory #>> ARRAY['builds', $build::text, 'at'])::float8
     ))
   FOR UPDATE SKIP LOCKED`,
);
const endRound = statement(
  'alert-round-end',
  `UPDATE alert_round SET
     ended_at = now(), memory = $memory, noted_at = CASE WHEN $is_noted::boolean THEN now() ELSE noted_at END`,
);

interface Outcome {
  opened: Alert[];
  resolved: Alert[];
  /** Rules by which more was found than may be open of them, or of an application; once an hour. */
  full: ({ rule: RuleName } & LeftOut)[];
}

/**
 * Evaluates the rules: what is found is opened as an alert, what is over is resolved, and notes of both are written to
 * be sent.
 */
@Injectable()
export class AlertRounds {
  private readonly logger = new Logger('Alerts');
  private readonly retentionDays: number;
  private readonly unfinished: OldestUnfinished;

  constructor(
    private readonly postgres: Postgres,
    { settings }: Config,
    private readonly channels: AlertChannels,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly applications: ApplicationDirectory,
    private readonly catalogue: Catalogue,
    ledgerClock: LedgerClock,
  ) {
    this.retentionDays = settings.RETENTION_DAYS;
    this.unfinished = new OldestUnfinished(ledgerClock);
  }

  /**
   * One round, in one transaction: alerts are opened, and notes of them written, together or not at all.
   * @param pauseMs since the last round of any process; sooner there is none
   * @param pausePerBuildMs the same in addition, for each build known whose last round is longer ago than that of this
   *   one
   * @returns whether this process had it
   * @throws where the subscriptions as they are now cannot be read: there is no round then
   */
  async run(pauseMs: number, pausePerBuildMs = 0): Promise<boolean> {
    // A subscription that was deleted, or made, in another process a moment ago would end an alert, or be passed over.
    await this.catalogue.refresh();
    const outcome = await this.postgres.transactionAside((query) =>
      this.inTransaction(query, { pause_ms: pauseMs, pause_per_build_ms: pausePerBuildMs, build: thisBuild }),
    );
    if (!outcome) return false;
    for (const { id, rule, subject, details } of outcome.opened)
      this.logger.warn({ event: 'alert.opened', alertId: id, rule, subject, details });
    for (const { id, rule, subject } of outcome.resolved)
      this.logger.log({ event: 'alert.resolved', alertId: id, rule, subject });
    for (const each of outcome.full) this.logger.warn({ event: 'alerts.limit-reached', ...each });
    return true;
  }

  private async inTransaction(query: Query, claim: Values): Promise<Outcome | undefined> {
    const [round] = await query<{ now: Date; noted_at: Date | null; memory: Memory }>(claimRound, claim);
    if (!round) return undefined;
    const { now, noted_at: lastNoteAt } = round;
    const rules = await readAlertRules(query);
    const observed = await observe(query, rules, round.memory, this.unfinished, now, this.postgres.isEmbedded);
    if (this.channels.names.length > 0) await tellAnew(query, this.channels.operators);
    const before = await readCurrent(query);
    const open = before.filter(({ resolvedAt }) => resolvedAt === null);
    const evaluated = evaluate(rules, observed, round.memory, this.subscriptions, new Set(open.map(keyOf)));
    const { opened: found, goOn, resolved } = changesOf(open, evaluated);

    const opened = await openAlerts(query, found);
    await updateAlerts(
      query,
      goOn.map(({ alert, finding }) => ({ id: alert.id, details: finding.details })),
    );
    // That its rule was switched off does not say that the trouble is over.
    const off = resolved.filter(({ rule }) => isOff(rules, rule));
    const over = resolved.filter(({ rule }) => !isOff(rules, rule));
    const idsOf = (alerts: readonly Alert[]) => alerts.map(({ id }) => id);
    const resolvedAt = await resolveAlerts(query, idsOf(resolved), idsOf(off));
    const current: StoredAlert[] = [
      ...opened,
      ...goOn.map(({ alert, finding }) => ({ ...alert, details: finding.details }) as StoredAlert),
      ...over.map((alert) => ({ ...alert, resolvedAt: resolvedAt ?? now })),
      ...before.filter((alert) => alert.resolvedAt !== null || evaluated.isUnseen(alert)),
    ];
    const due = dueNow(current, rules, now, lastNoteAt);
    const isTold = await this.write(query, due, rules.tellsOwners);
    await this.forget(query);
    const limits = limitsToTell(evaluated.leftOut, now.getTime(), round.memory.limitToldAt);
    const memory: Memory = { ...evaluated.memory, limitToldAt: limits.toldAt };
    await query(endRound, { memory: JSON.stringify(memory), is_noted: isTold });
    const full = limits.rules.map((rule) => ({ rule, ...evaluated.leftOut[rule]! }));
    return { opened, resolved, full };
  }

  /** @returns whether there was anybody to tell */
  private async write(query: Query, due: ReturnType<typeof dueNow>, tellsOwners: boolean): Promise<boolean> {
    // A process with channels is to find all of it still to be told.
    if (this.channels.names.length === 0) return false;
    const owners = new Owners(this.subscriptions, this.applications);
    const isMailed = tellsOwners && this.channels.names.includes('mail');
    const isUnsent = await readUnsent(
      query,
      due.map(({ alert }) => alert.id),
    );
    const ownersOf = (alert: Alert) => (isMailed ? owners.of(alert) : []);
    const written = writeNotes(due, this.channels.operators, ownersOf, isUnsent, tellsOwners);
    await insertNotes(
      query,
      written.map(({ recipient, content }) => ({ ...recipient, id: randomUUID(), content })),
    );
    for (const [alertId, addresses] of owners.leftOut)
      this.logger.warn({ event: 'alert.owners-left-out', alertId, addresses });
    const operators = new Set(this.channels.operators.map(({ address }) => address));
    const told = new Map<string, string[]>();
    for (const { recipient, content } of written)
      for (const id of content.alertIds) {
        const others = told.get(id) ?? [];
        told.set(id, operators.has(recipient.address) ? others : [...others, recipient.address]);
      }
    await markTold(
      query,
      due
        // An end that nobody is to be told of any more is over with.
        .filter(({ alert, kind }) => told.has(alert.id) || kind === 'resolved')
        .map(({ alert }) => ({ id: alert.id, told: [...new Set([...alert.told, ...(told.get(alert.id) ?? [])])] })),
    );
    return written.length > 0;
  }

  private async forget(query: Query): Promise<void> {
    const values = { after_ms: giveUpAfterMs, lease_ms: leaseMs };
    const givenUp = await query<{ channel: NoteChannel }>(giveUpOld, values);
    for (const { channel } of givenUp) notesCounted.inc({ channel, result: 'given-up' });
    await query(forgetNotes, { days: this.retentionDays });
    await forgetAlerts(query, this.retentionDays);
  }
}
