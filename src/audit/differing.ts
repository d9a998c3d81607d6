import { isDeepStrictEqual } from 'node:util';

/** The fields of something that was changed, without secrets. Null: it is not there. */
export type Fields = Readonly<Record<string, unknown>> | null;

/** The fields in which the two differ, as JSON has them; all of them where one is null. */
export function differing(before: Fields, after: Fields): [before: Fields, after: Fields] {
  const [one, other] = [asJson(before), asJson(after)];
  if (one === null || other === null) return [one, other];
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  const differ = [...names].filter((name) => !isDeepStrictEqual(one[name], other[name]));
  return [only(differ, one), only(differ, other)];
}

const asJson = (fields: Fields): Fields => JSON.parse(JSON.stringify(fields)) as Fields;

const only = (names: string[], fields: NonNullable<Fields>): Fields =>
  Object.fromEntries(names.filter((name) => name in fields).map((name) => [name, fields[name]]));
