import type { EntityManager } from 'typeorm';
import type { Channel } from '../channels/channel.js';
import { ValidationProblem, type InvalidParam } from '../infra/http/problem.js';
import type { OperationalEvent } from '../operational-events/operational-events.service.js';
import type { FieldChange } from './fields-that-differ.js';
import type { ReadConfiguration } from './read-configuration.js';

export const sectionNames = ['applications', 'channels', 'subscriptions', 'alertRules', 'retryPolicy'] as const;
export type SectionName = (typeof sectionNames)[number];

export interface PlannedChange {
  section: SectionName;
  action: 'create' | 'change' | 'remove';
  /**
   * Client id of an application, name of a channel, id of a subscription, `general` of the retry policy and of the
   * alert rules.
   */
  key: string;
  /** For people, where the key alone says little to them. */
  about: string | null;
  fields: FieldChange[];
  /** Consequences beyond the fields, in sentences. */
  notes: string[];
}

/** A change, and how it is made by itself. */
export interface Step {
  change: PlannedChange;
  carryOut: (manager: EntityManager, version: number) => Promise<void>;
}

/** Of one section. */
export interface Planned {
  changes: PlannedChange[];
  /**
   * Makes the changes, within a change of the catalogue.
   * @returns the events to report once that is committed
   */
  carryOut: (manager: EntityManager, version: number) => Promise<OperationalEvent[]>;
  /** Entries that are as they should be. */
  unchanged: number;
  /** Things that are there and not in the configuration, and stay. */
  unnamed: { count: number; first: string[] };
}

export interface Plan {
  changes: PlannedChange[];
  /** Entries that are as they should be. */
  unchanged: Record<SectionName, number>;
  /** Things that the configuration does not name, of the sections that it has, and that therefore stay. */
  unnamed: Record<SectionName, Planned['unnamed']>;
}

/** Of a section that the configuration does not have. */
export const nothingPlanned: Planned = { ...oneByOne([]), unchanged: 0, unnamed: { count: 0, first: [] } };

export function oneByOne(steps: readonly Step[]): Pick<Planned, 'changes' | 'carryOut'> {
  return {
    changes: steps.map(({ change }) => change),
    carryOut: async (manager, version) => {
      for (const step of steps) await step.carryOut(manager, version);
      return [];
    },
  };
}

/** So many of what is not in the configuration are named, and the rest counted. */
export const mostUnnamed = 20;

type NamedChannel = Pick<Channel, 'filters' | 'canonicalFilters'>;

/** The state that the sections of one plan share. */
export class Planning {
  /** As they will be. A section fills its own for those after it. */
  readonly clientIds = new Set<string>();
  /** Client ids of applications that may subscribe. */
  readonly consumers = new Set<string>();
  /** Client ids of applications that are pruned. */
  readonly pruned = new Set<string>();
  readonly channels = new Map<string, NamedChannel>();

  /** The sections of which entries could not be read. */
  private readonly unreadable: ReadonlySet<string>;

  constructor(
    /** Reads what is there; within a change of the catalogue nothing else changes it. */
    readonly manager: EntityManager,
    readonly configuration: ReadConfiguration,
    /** Has what is wrong with the form of the configuration, and gets what else is wrong. */
    readonly problems: InvalidParam[],
    readonly options: {
      isPruning: boolean;
      /** Client id of who asks. */
      caller: string | undefined;
      /** Whether names of new callbacks are looked up, which may take seconds. */
      looksUpCallbacks: boolean;
      /** Milliseconds since 1970, by Postgres' clock: the clock of the machine may be off by years. */
      nowMs: number;
      /** Of a start: gets what is not done yet, where a request would be refused and could be repeated. */
      postponed?: InvalidParam[] | undefined;
    },
  ) {
    this.unreadable = new Set(problems.map(({ name }) => name.split('.', 1)[0]!));
  }

  refuse(name: string, code: string, reason: string): void {
    this.problems.push({ name, code, reason });
  }

  /**
   * Runs a check that throws.
   * @returns undefined: something is wrong
   */
  check<T>(name: string, work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof ValidationProblem)) throw error;
      for (const { name: field, code, reason } of error.extra.invalidParams ?? [])
        this.refuse(field === '' ? name : `${name}.${field}`, code, reason);
      return undefined;
    }
  }

  /** A second entry for the same is refused. @returns whether it is the first */
  isFirst(seen: Set<string>, key: string, name: string): boolean {
    const isNew = !seen.has(key);
    seen.add(key);
    if (!isNew) this.refuse(name, 'unique', 'There is an entry for this above.');
    return isNew;
  }

  /** Whether entries of that section could not be read: then what refers to one that is not there may be right. */
  isUnreadable(section: SectionName): boolean {
    return this.unreadable.has(section);
  }
}

/** One part of a configuration: it reads what is there, compares, and says how to get from one to the other. */
export interface Section {
  plan(planning: Planning): Promise<Planned>;
}
