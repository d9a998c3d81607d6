import type * as z from 'zod';

type Path = readonly PropertyKey[];

const booleans: Readonly<Record<string, boolean>> = {
  true: true,
  yes: true,
  on: true,
  1: true,
  false: false,
  no: false,
  off: false,
  0: false,
};

/**
 * Gives scalars the type that the schema wants: a variable of the environment is a text where a number is wanted, and
 * `007` without quotes is a number where a text is wanted. A scalar that fits no better stays as it is, for the schema
 * to refuse.
 * @param sourceOf a value as it is written, by its path with dots
 */
export function fitScalars(
  schema: z.ZodType,
  value: unknown,
  sourceOf: (name: string) => string | undefined = () => undefined,
): unknown {
  const parsed = schema.safeParse(value);
  if (parsed.success) return value;
  const fitted = structuredClone(value);
  for (const issue of parsed.error.issues) {
    const parent = at(fitted, issue.path.slice(0, -1));
    const key = issue.path.at(-1);
    if (parent === undefined || key === undefined) continue;
    parent[key] = fit(issue, parent[key], () => sourceOf(issue.path.map(String).join('.')));
  }
  return fitted;
}

function fit(issue: z.core.$ZodIssue, value: unknown, source: () => string | undefined): unknown {
  const expected =
    issue.code === 'invalid_type' ? issue.expected : issue.code === 'invalid_union' ? 'number' : undefined;
  if (expected === 'string' && (typeof value === 'number' || typeof value === 'boolean'))
    return source() ?? String(value);
  if (expected === 'boolean' && (typeof value === 'string' || typeof value === 'number'))
    return booleans[String(value).toLowerCase()] ?? value;
  if ((expected === 'number' || expected === 'int') && typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value))
    return Number(value);
  return value;
}

function at(value: unknown, path: Path): Record<PropertyKey, unknown> | undefined {
  let inside = value;
  for (const key of path) {
    if (typeof inside !== 'object' || inside === null) return undefined;
    inside = (inside as Record<PropertyKey, unknown>)[key];
  }
  return typeof inside === 'object' && inside !== null ? (inside as Record<PropertyKey, unknown>) : undefined;
}
