import type * as z from 'zod';
import { longestParamName, mostInvalidParams, ValidationProblem, wholeInput, type InvalidParam } from './problem.js';

/**
 * Checks the body or the query of a call against its schema and returns what the schema makes of it. The same schema
 * documents the call, so document and check cannot differ. Not for a hot path: a reader written by hand costs a tenth.
 * @throws {ValidationProblem} naming the wrong fields at once, or the first ones of very many
 */
export function checkInput<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const parsed = schema.safeParse(input, { reportInput: true });
  if (parsed.success) return parsed.data;
  throw new ValidationProblem(paramsOf(parsed.error));
}

/** The wrong fields, or the first ones of very many. @param error of a parse with `reportInput` */
export function paramsOf({ issues }: z.ZodError): InvalidParam[] {
  const params: InvalidParam[] = [];
  const ofAnotherType = new Set(issues.filter(({ code }) => code === 'invalid_type').map(pathOf));
  for (const issue of issues) {
    const left = mostInvalidParams - params.length;
    if (left <= 0) break;
    // zod checks the length of every value that has one, also where a value of another type was wanted.
    if (issue.code === 'invalid_type' || !ofAnotherType.has(pathOf(issue))) params.push(...invalidParams(issue, left));
  }
  return params;
}

const pathOf = ({ path }: z.core.$ZodIssue): string => path.join('.');

function invalidParams(issue: z.core.$ZodIssue, most: number): InvalidParam[] {
  const at = (name: string | undefined, code: string, reason: string): InvalidParam => ({
    name:
      [...issue.path.map(String), ...(name === undefined ? [] : [name])].join('.').slice(0, longestParamName) ||
      wholeInput,
    code,
    reason,
  });
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.slice(0, most).map((key) => at(key, 'unknown', 'There is no such field here.'));
    case 'invalid_key': {
      const [first = issue] = issue.issues;
      return [at(undefined, codeOf(first), first.message)];
    }
    case 'invalid_union':
      if (issue.discriminator !== undefined) {
        const given = (issue.input as Record<string, unknown>)[issue.discriminator];
        const code = given === undefined ? 'required' : given === null ? 'null' : 'invalid_choice';
        return [at(undefined, code, issue.message)];
      }
      return [at(undefined, codeOf(limitPassed(issue.errors) ?? issue), issue.message)];
    default:
      return [at(undefined, codeOf(issue), issue.message)];
  }
}

/** The issue of the one alternative whose type the value has, but whose limits it exceeds. */
function limitPassed(alternatives: z.core.$ZodIssue[][]): z.core.$ZodIssue | undefined {
  return alternatives.flat().find((issue) => issue.code === 'too_small' || issue.code === 'too_big');
}

function codeOf(issue: z.core.$ZodIssue): string {
  if (issue.input === null) return 'null';
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'required';
      if (issue.expected === 'array') return 'not_a_list';
      if (issue.expected === 'object') return 'not_a_dict';
      return 'invalid';
    case 'invalid_value':
      return issue.input === undefined ? 'required' : 'invalid_choice';
    case 'too_small':
      if (issue.origin === 'string') return 'blank';
      return issue.origin === 'array' ? 'empty' : 'min_value';
    case 'too_big':
      return ['string', 'array', 'record'].includes(issue.origin) ? 'max_length' : 'max_value';
    default:
      return 'invalid';
  }
}
