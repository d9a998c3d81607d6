import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { currentAuthor } from '../audit/author.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ConflictProblem, ValidationProblem, type InvalidParam } from '../infra/http/problem.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { OperationalEvents } from '../operational-events/operational-events.service.js';
import { alertRulesSection } from './alert-rules.section.js';
import { ApplicationsSection } from './applications.section.js';
import { ChannelsSection } from './channels.section.js';
import { Planning, type Plan, type Planned, type Section, type SectionName } from './planning.js';
import { readConfiguration } from './read-configuration.js';
import { retryPolicySection } from './retry-policy.section.js';
import { SubscriptionsSection } from './subscriptions.section.js';

/** An answer, and a line of the log, must end somewhere. */
const mostProblems = 500;

interface Seen {
  confirm?: number | undefined;
  mustFit?: (plan: Plan) => void;
  postponed?: InvalidParam[];
}

interface Manner {
  isPruning: boolean;
  looksUpCallbacks: boolean;
  postponed: InvalidParam[] | undefined;
}

/** Compares a configuration with what is there, and makes what is there as it says: all of it, or nothing. */
@Injectable()
export class ConfigurationService {
  /** In the order of their dependence: subscriptions name channels and applications. */
  private readonly sections: Readonly<Record<SectionName, Section>>;

  constructor(
    private readonly catalogue: Catalogue,
    private readonly postgres: Postgres,
    private readonly events: OperationalEvents,
    applications: ApplicationsSection,
    channels: ChannelsSection,
    subscriptions: SubscriptionsSection,
  ) {
    this.sections = {
      applications,
      channels,
      subscriptions,
      alertRules: alertRulesSection,
      retryPolicy: retryPolicySection,
    };
  }

  /**
   * The changes that `apply` would make now.
   * @param input a configuration whose references are resolved
   * @param isPruning whether what it does not name is to go, in the sections that it has
   * @param postponed of a start: gets what is not done yet, where others are refused and can repeat it
   * @throws {ValidationProblem} with all that is wrong
   */
  async plan(input: unknown, isPruning: boolean, postponed?: InvalidParam[]): Promise<Plan> {
    // Before the start nothing is in memory yet, and the shares of applications are reckoned from there.
    await this.catalogue.refresh();
    const manner = { isPruning, looksUpCallbacks: true, postponed };
    return planOf(await this.planWith(this.postgres.dataSource.manager, input, manner));
  }

  /**
   * Makes the changes, in one transaction. Several processes may do so at once: one makes the changes, and the others
   * find nothing left to change.
   * @param seen `confirm`: how many are removed, as somebody has seen it; needed where any are. `mustFit` throws where
   *   these changes are not to be made. `postponed`: as of `plan`
   * @returns the changes that were made
   * @throws {ValidationProblem} with all that is wrong; then nothing was changed
   * @throws {ConflictProblem} when another number would be removed; then nothing was changed
   */
  async apply(input: unknown, isPruning: boolean, { confirm, mustFit, postponed }: Seen = {}): Promise<Plan> {
    // Names of callbacks are looked up before the transaction: for as long as that lasts, nobody else can change
    // anything.
    const before = await this.plan(input, isPruning, postponed);
    if (before.changes.length === 0) return before;
    mustFit?.(before);
    requireConfirmed(before, confirm);
    let plan = before;
    const carryOut = async (manager: EntityManager, version: number) => {
      const planned = await this.planWith(manager, input, { isPruning, looksUpCallbacks: false, postponed });
      plan = planOf(planned);
      if (plan.changes.length === 0) return undefined;
      mustFit?.(plan);
      requireConfirmed(plan, confirm);
      const reported = [];
      for (const section of Object.values(planned)) reported.push(await section.carryOut(manager, version));
      return reported.flat();
    };
    await this.catalogue.changeIfNeeded(carryOut, (events) => events.forEach((event) => this.events.report(event)));
    return plan;
  }

  private async planWith(
    manager: EntityManager,
    input: unknown,
    manner: Manner,
  ): Promise<Record<SectionName, Planned>> {
    manner.postponed?.splice(0); // it is planned anew
    const problems: InvalidParam[] = [];
    const configuration = await readConfiguration(input, problems);
    const [{ now_ms: now }] = await manager.query<[{ now_ms: string }]>(
      'SELECT (extract(epoch FROM now()) * 1000)::bigint AS now_ms',
    );
    const options = { ...manner, caller: currentAuthor()?.client, nowMs: Number(now) };
    const planning = new Planning(manager, configuration, problems, options);
    const planned: Partial<Record<SectionName, Planned>> = {};
    for (const [name, section] of Object.entries(this.sections))
      planned[name as SectionName] = await section.plan(planning);
    if (problems.length > 0) throw new ValidationProblem(bounded(problems));
    return planned as Record<SectionName, Planned>;
  }
}

function planOf(planned: Record<SectionName, Planned>): Plan {
  const each = <T>(of: (section: Planned) => T) =>
    Object.fromEntries(Object.entries(planned).map(([name, section]) => [name, of(section)])) as Record<SectionName, T>;
  return {
    changes: Object.values(planned).flatMap(({ changes }) => changes),
    unchanged: each(({ unchanged }) => unchanged),
    unnamed: each(({ unnamed }) => unnamed),
  };
}

/**
 * An empty list in a file, or one that was cut off, prunes all there is. Where others have removed some before, all
 * must have gone.
 */
function requireConfirmed({ changes }: Plan, confirm: number | undefined): void {
  const count = changes.filter(({ action }) => action === 'remove').length;
  if (count === 0 || count === confirm) return;
  throw new ConflictProblem(
    'removals-not-confirmed',
    `${count} applications and subscriptions would be removed. If that is what you want, repeat the request with ?confirm=${count}.`,
  );
}

function bounded(problems: InvalidParam[]): InvalidParam[] {
  if (problems.length <= mostProblems) return problems;
  const reason = `There are ${problems.length - mostProblems} more.`;
  return [...problems.slice(0, mostProblems), { name: '', code: 'invalid', reason }];
}
