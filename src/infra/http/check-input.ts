import type * as z from 'zod';
import { ValidationProblem, wholeInput, type InvalidParam } from './problem.js';

/**
 * Checks the body or the query of a call against its schema and returns what the schema makes of it. The same schema
 * documents the call, so document and check cannot differ. Not for a hot path: a reader written by hand costs a tenth.
 * @throws {ValidationProblem} naming every wrong field at once
 */
export function checkInput<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const parsed = schema.safeParse(input, { reportInput: true });
  if (parsed.success) return parsed.data;
  throw new ValidationProblem(paramsOf(parsed.error));
}

/** Each wrong field. @param error of a parse with `reportInput` */
export const paramsOf = ({ issues }: z.ZodError): InvalidParam[] =>
  issues.filter((issue) => !isBesideThePoint(issue, issues)).flatMap(invalidParams);

/** zod checks the length of every value that has one, also where a value of another type was wanted. */
function isBesideThePoint(issue: z.core.$ZodIssue, issues: z.core.$ZodIssue[]): boolean {
  if (issue.code === 'invalid_type') return false;
  const path = issue.path.join('.');
  return issues.some((other) => other !== issue && other.code === 'invalid_type' && other.path.join('.') === path);
}

function invalidParams(issue: z.core.$ZodIssue): InvalidParam[] {
  const at = (name: string | undefined, code: string, reason: string): InvalidParam => ({
    name: [...issue.path.map(String), ...(name === undefined ? [] : [name])].join('.') || wholeInput,
    code,
    reason,
  });
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => at(key, 'unknown', 'There is no such field here.'));
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
      if (issue.origin === 'string') return 'max_length';
      return issue.origin === 'array' ? 'max_length' : 'max_value';
    default:
      return 'invalid';
  }
}
