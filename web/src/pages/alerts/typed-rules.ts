import type { AlertRules } from './alerts.ts';

type Typed<T> = T extends number ? T | null : T;

/** The rules as they are typed: a number is null while its field is empty, on the way to another number. */
export type TypedRules = {
  [Name in keyof AlertRules]: AlertRules[Name] extends { isEnabled: boolean }
    ? { [Field in keyof AlertRules[Name]]: Typed<AlertRules[Name][Field]> }
    : Typed<AlertRules[Name]>;
};

const hasNoGap = (rule: object): boolean => Object.values(rule).every((value) => value !== null);

/** Whether they can be saved. */
export function isComplete(typed: TypedRules): boolean {
  const { repeatAfterHours: _, ...needed } = typed;
  return (
    hasNoGap(needed) && Object.values(needed).every((rule) => typeof rule !== 'object' || hasNoGap(rule as object))
  );
}

/** Its fields are hidden while it is off: a number that is missing there is the saved one again. */
export function switched<R extends { isEnabled: boolean }>(typed: R, saved: R, isEnabled: boolean): R {
  const given = Object.fromEntries(Object.entries(typed).filter(([, value]) => value !== null)) as Partial<R>;
  return { ...saved, ...given, isEnabled };
}
