import * as z from 'zod';
import type { InvalidParam } from '../infra/http/problem.js';

/** The places that references may lead to. */
export interface Sources {
  variable(name: string): string | undefined;
  /** @throws errors of the file system */
  file(path: string): string;
  /**
   * Whether they are not those of the place that the text is for. Then a field whose reference leads to nothing is left
   * out, whatever default it has: there it may lead to something, and what is there stays.
   */
  isPartial?: boolean;
}

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);

/** The content of `value_from`. An empty variable or file counts as unset. */
export const referenceSchema = z.union([
  z.strictObject({
    env: z.string().min(1).describe('Name of an environment variable.'),
    default: scalar.optional().describe('The value where the variable is unset or empty.'),
    required: z.boolean().optional().describe('false: where it is unset or empty, the field counts as left out.'),
  }),
  z.strictObject({
    file: z
      .string()
      .min(1)
      .describe('Path of a file, from the directory of this one; a line break at its end is cut off.'),
    default: scalar.optional().describe('The value where there is no such file, or it is empty.'),
    required: z
      .boolean()
      .optional()
      .describe('false: where there is none, or it is empty, the field counts as left out.'),
  }),
]);

export type Reference = z.output<typeof referenceSchema>;

/** A reference that the text has. */
export interface FoundReference {
  /** Of the field that it stands in. */
  name: string;
  reference: Reference;
  /** Whether it leads to something. */
  isFollowed: boolean;
}

export interface Resolved {
  value: unknown;
  problems: InvalidParam[];
  references: FoundReference[];
}

export const labelOf = (reference: Reference): string =>
  'env' in reference ? `The variable ${reference.env}` : `The file ${reference.file}`;

/** The field counts as left out. */
const leftOut = Symbol('left out');

/** A value with what its references (`value_from`) lead to in their places. */
export function resolveReferences(value: unknown, sources: Sources): Resolved {
  const problems: InvalidParam[] = [];
  const references: FoundReference[] = [];
  const refuse = (name: string, code: string, reason: string) => {
    problems.push({ name, code, reason });
    return leftOut;
  };
  const follow = (reference: Reference, name: string): unknown => {
    const label = labelOf(reference);
    let found: string | undefined;
    try {
      const read = 'env' in reference ? sources.variable(reference.env) : withoutEnd(sources.file(reference.file));
      found = read || undefined;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT') return refuse(name, 'invalid', `${label} cannot be read: ${code ?? message}.`);
    }
    references.push({ name, reference, isFollowed: found !== undefined });
    if (found !== undefined) return found;
    if (sources.isPartial) return leftOut;
    if (reference.default !== undefined && reference.default !== null) return reference.default;
    if (reference.required === false || reference.default === null) return leftOut;
    return refuse(name, 'required', `${label} is not set, or empty; \`required: false\` makes it optional.`);
  };
  const resolve = (each: unknown, name: string): unknown => {
    const below = (key: string | number) => (name === '' ? String(key) : `${name}.${key}`);
    if (Array.isArray(each)) {
      return each.map((item, index) => {
        const resolved = resolve(item, below(index));
        if (resolved === leftOut && !problems.some((problem) => problem.name === below(index)))
          refuse(below(index), 'required', 'An item of a list cannot be left out.');
        return resolved === leftOut ? null : resolved;
      });
    }
    if (typeof each !== 'object' || each === null) return each;
    if ('value_from' in each) {
      const { value_from: reference, ...others } = each as Record<string, unknown>;
      const parsed = referenceSchema.safeParse(reference);
      if (parsed.success && Object.keys(others).length === 0) return follow(parsed.data, name);
      const reason = 'Must be `env` or `file`, with `default` or `required` or without, and nothing beside it.';
      return refuse(below('value_from'), 'invalid', reason);
    }
    const entries = Object.entries(each).map(([key, item]) => [key, resolve(item, below(key))] as const);
    // Of a header the name alone says that the one there is stays.
    const isHeaders = name.split('.').at(-1) === 'headers';
    return Object.fromEntries(
      entries
        .filter(([, item]) => isHeaders || item !== leftOut)
        .map(([key, item]) => [key, item === leftOut ? null : item]),
    );
  };
  const resolved = resolve(value, '');
  return { value: resolved === leftOut ? undefined : resolved, problems, references };
}

const withoutEnd = (text: string): string => text.replace(/\r?\n$/, '');

const secretNames = new Set(['secret', 'auth', 'clientSecret', 'key']);

/** Names of the fields that hold a secret in the file itself, rather than a reference to it. */
export function plainSecrets(value: unknown, name = '', isSecret = false): string[] {
  if (typeof value === 'string') return isSecret && value !== '' ? [name] : [];
  if (typeof value !== 'object' || value === null || 'value_from' in value) return [];
  const isHeaders = !Array.isArray(value) && name.split('.').at(-1) === 'headers';
  // A characteristic may be called `key`.
  if (name.split('.').at(-1) === 'filters') return [];
  return Object.entries(value).flatMap(([key, item]) =>
    plainSecrets(
      item,
      name === '' ? key : `${name}.${key}`,
      isHeaders || (!Array.isArray(value) && secretNames.has(key)),
    ),
  );
}
