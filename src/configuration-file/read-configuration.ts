import type * as z from 'zod';
import { alertRulesInput } from '../alerts/alert-rules.js';
import { paramsOf } from '../infra/http/check-input.js';
import type { InvalidParam } from '../infra/http/problem.js';
import { LongWork } from '../infra/long-work.js';
import { policyOverrideInput } from '../retry-policy/policy-input.js';
import {
  applicationEntry,
  channelEntry,
  configurationSchema,
  subscriptionEntry,
  type Configuration,
} from './configuration-schema.js';

/** An entry of a list of the configuration, and the name of its place in it. */
export interface Entry<T> {
  name: string;
  wanted: T;
}

/** The entries whose form is right. */
export interface ReadConfiguration {
  /** Undefined: the configuration says nothing of them. */
  applications: Entry<NonNullable<Configuration['applications']>[number]>[] | undefined;
  channels: Entry<NonNullable<Configuration['channels']>[number]>[] | undefined;
  subscriptions: Entry<NonNullable<Configuration['subscriptions']>[number]>[] | undefined;
  retryPolicy: Configuration['retryPolicy'];
  alertRules: Configuration['alertRules'];
}

const listed = { applications: applicationEntry, channels: channelEntry, subscriptions: subscriptionEntry };

/**
 * Reads each entry by itself: one that is wrong does not hide what is wrong with others.
 * @param problems gets what is wrong with their form
 */
export async function readConfiguration(input: unknown, problems: InvalidParam[]): Promise<ReadConfiguration> {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    problems.push({ name: '', code: 'not_a_dict', reason: 'Not an object.' });
    return {
      applications: undefined,
      channels: undefined,
      subscriptions: undefined,
      retryPolicy: undefined,
      alertRules: undefined,
    };
  }
  const given = input as Record<string, unknown>;
  for (const key of Object.keys(given)) {
    if (Object.hasOwn(configurationSchema.shape, key)) continue;
    problems.push({ name: key, code: 'unknown', reason: 'There is no such field here.' });
  }
  const read = <Schema extends z.ZodType>(schema: Schema, value: unknown, name: string) => {
    const parsed = schema.safeParse(value, { reportInput: true });
    if (parsed.success) return parsed.data;
    problems.push(...paramsOf(parsed.error).map((param) => ({ ...param, name: joined(name, param.name) })));
    return undefined;
  };
  const readOne = <Schema extends z.ZodType>(schema: Schema, name: string) =>
    given[name] === undefined ? undefined : read(schema, given[name], name);
  const work = new LongWork();
  const readList = async <Name extends keyof typeof listed>(list: Name): Promise<ReadConfiguration[Name]> => {
    const entries = given[list];
    if (entries === undefined) return undefined;
    if (Array.isArray(entries)) {
      const found = [];
      for (const [index, entry] of entries.entries()) {
        await work.yieldIfDue();
        const name = `${list}.${index}`;
        const wanted = read(listed[list], entry, name);
        if (wanted !== undefined) found.push({ name, wanted });
      }
      return found as ReadConfiguration[Name];
    }
    problems.push({ name: list, code: entries === null ? 'null' : 'not_a_list', reason: 'Not a list.' });
    return undefined;
  };
  return {
    applications: await readList('applications'),
    channels: await readList('channels'),
    subscriptions: await readList('subscriptions'),
    retryPolicy: readOne(policyOverrideInput, 'retryPolicy'),
    alertRules: readOne(alertRulesInput, 'alertRules'),
  };
}

const joined = (name: string, field: string): string => (field === '' ? name : `${name}.${field}`);
