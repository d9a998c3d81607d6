import { keyOf, type Finding } from './alert.js';
import { mostSubjects } from './look.js';

/** Of the findings of one rule those that are, or become, alerts, and how many no room is left for. */
export interface Share {
  findings: Finding[];
  leftOut: number;
}

/**
 * Those that are open already, and so many others that there are not more than may be open of a rule. Nobody's become
 * more than is left for all others, so that one who has hundreds of subscriptions in trouble does not keep the first
 * one of somebody else from being told of. A round sees a part of the subscriptions, and one after the other could open
 * more.
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
  if (!first) return { findings: [], leftOut: 0 };
  const prefix = `${first.rule} `;
  const had = new Map<string | undefined, number>();
  let free = mostSubjects;
  const take = (subject: string): void => {
    const owner = ownerOf(subject);
    had.set(owner, (had.get(owner) ?? 0) + 1);
    free -= 1;
  };
  const hasEnough = (subject: string): boolean => {
    const owner = ownerOf(subject);
    return owner !== undefined && (had.get(owner) ?? 0) > free;
  };
  for (const key of open) if (key.startsWith(prefix)) take(key.slice(prefix.length));
  const shared = findings.filter((finding) => {
    if (open.has(keyOf(finding))) return true;
    if (free <= 0 || hasEnough(finding.subject)) return false;
    take(finding.subject);
    return true;
  });
  return { findings: shared, leftOut: findings.length - shared.length };
}

const hourMs = 3_600_000;

/**
 * Limits that are reached are told of once an hour each.
 * @param at now, in milliseconds since 1970
 * @param toldAt by rule, of those told within the hour; a time ahead is from before Postgres' clock was set back
 */
export function limitsToTell<Rule extends string>(
  leftOut: Partial<Record<Rule, number>>,
  at: number,
  toldAt: Partial<Record<string, number>> = {},
): { rules: Rule[]; toldAt: Partial<Record<string, number>> } {
  const recent = Object.entries(toldAt).filter(([, told]) => told! <= at && at - told! < hourMs);
  const known = new Set(recent.map(([rule]) => rule));
  const rules = (Object.keys(leftOut) as Rule[]).filter((rule) => !known.has(rule));
  return { rules, toldAt: Object.fromEntries([...recent, ...rules.map((rule) => [rule, at] as const)]) };
}
