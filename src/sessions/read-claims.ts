import { userRoles, type UserRole } from '../auth/user-roles.js';
import { isStorable } from '../infra/postgres/storable-text.js';

export type Claims = Readonly<Record<string, unknown>>;

/** Role → the values of the claim that give it; `*`: any user. */
export type RoleValues = Readonly<Record<UserRole, readonly string[]>>;

const mostOfName = 200;

/** The highest role that the claim gives; undefined: none. @param claim its name, or the way to it with dots */
export function roleIn(claims: Claims, claim: string, roles: RoleValues): UserRole | undefined {
  const values = new Set([...valuesOf(valueAt(claims, claim)), '*']);
  return userRoles.findLast((role) => roles[role].some((value) => values.has(value)));
}

/**
 * The name of a user for people: what the provider calls the person, and what tells apart two persons of that name. The
 * provider may let users choose either.
 */
export function nameIn(claims: Claims): string {
  const [name, login] = [
    textOf(claims.name),
    textOf(claims.preferred_username) ?? textOf(claims.email) ?? textOf(claims.sub),
  ];
  const whole = name === undefined || name === login ? (login ?? 'unknown') : `${name} (${login})`;
  return whole.slice(0, mostOfName);
}

/** Names may contain dots themselves, and those of some providers are URLs. */
function valueAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  let found: unknown = claims;
  for (const name of path.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Claims)[name];
  }
  return found;
}

const valuesOf = (value: unknown): string[] =>
  [value].flat().filter((each): each is string => typeof each === 'string' && each !== '*');

/** On one line. */
function textOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const text = value.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  return text !== '' && isStorable(text) ? text : undefined;
}
