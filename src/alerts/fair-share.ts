import { keyOf, type Finding } from './alert.js';
import { mostSubjects } from './look.js';

/** Findings that no room is left for. */
export interface LeftOut {
  leftOut: number;
  /** `rule`: as many are open as may be of it. `share`: of each of their owners, as many as are left for others. */
  reason: 'rule' | 'share';
  /** Of most of these; null: not known. */
  owner: string | null;
}

/** Of the findings of one rule those that are, or become, alerts, and the others; undefined: there are none. */
export interface Share {
  findings: Finding[];
  leftOut: LeftOut | undefined;
}

/** Open alerts of a rule with the first ones of owners that had none when as many were open as may be of a rule. */
const mostWithFirst = 2 * mostSubjects;

/**
 * Those that are open already, and so many others that there are not more than may be open of a rule. Nobody's become
 * more than is left for all others, so that one who has hundreds of subscriptions in trouble does not keep the first
 * one of somebody else from being told of. That is opened also where no room is left, as what is open may stay so for
 * ever. A round sees a part of the subscriptions, and one after the other could open more.
 * @param findings of one rule; of one owner the first ones are taken
 * @param open keys of all alerts that are open
 * @param ownerOf by subject; undefined: not known, and only the limit of all counts
 */
export function shareOut(
  findings: readonly Finding[],
  open: ReadonlySet<string>,
  ownerOf: (subject: string) => string | undefined,
): Share {
  const [first] = findings;
  if (!first) return { findings: [], leftOut: undefined };
  const prefix = `${first.rule} `;
  const had = new Map<string | undefined, number>();
  let free = mostSubjects;
  const take = (subject: string): void => {
    const owner = ownerOf(subject);
    had.set(owner, (had.get(owner) ?? 0) + 1);
    free -= 1;
  };
  const mayHave = (subject: string): boolean => {
    const owner = ownerOf(subject);
    if (owner === undefined) return free > 0;
    const own = had.get(owner);
    return own === undefined ? free > mostSubjects - mostWithFirst : free > 0 && own <= free;
  };
  const leftOut = new Map<string | undefined, number>();
  for (const key of open) if (key.startsWith(prefix)) take(key.slice(prefix.length));
  const shared = findings.filter((finding) => {
    if (open.has(keyOf(finding))) return true;
    if (mayHave(finding.subject)) {
      take(finding.subject);
      return true;
    }
    const owner = ownerOf(finding.subject);
    leftOut.set(owner, (leftOut.get(owner) ?? 0) + 1);
    return false;
  });
  const [most] = [...leftOut].sort(([, one], [, other]) => other - one);
  if (!most) return { findings: shared, leftOut: undefined };
  const count = findings.length - shared.length;
  return { findings: shared, leftOut: { leftOut: count, reason: free > 0 ? 'share' : 'rule', owner: most[0] ?? null } };
}

const hourMs = 3_600_000;

/**
 * Limits that are reached are told of once an hour each.
 * @param at now, in milliseconds since 1970
 * @param toldAt by rule, of those told within the hour; a time ahead is from before Postgres' clock was set back
 */
export function limitsToTell<Rule extends string>(
  leftOut: Partial<Record<Rule, unknown>>,
  at: number,
  toldAt: Partial<Record<string, number>> = {},
): { rules: Rule[]; toldAt: Partial<Record<string, number>> } {
  const recent = Object.entries(toldAt).filter(([, told]) => told! <= at && at - told! < hourMs);
  const known = new Set(recent.map(([rule]) => rule));
  const rules = (Object.keys(leftOut) as Rule[]).filter((rule) => !known.has(rule));
  return { rules, toldAt: Object.fromEntries([...recent, ...rules.map((rule) => [rule, at] as const)]) };
}
