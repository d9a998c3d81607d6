import type { JsonObject } from '../infra/http/json-body.pipe.js';
import { longestParamName, mostInvalidParams, type InvalidParam } from '../infra/http/problem.js';
import { isStorable, unstorable } from '../infra/postgres/storable-text.js';

/** The standard's name for an object as a whole, where a field is named. */
export const nonFieldErrors = 'nonFieldErrors';

/** Why a value was refused. */
export interface Refusal {
  code: string;
  reason: string;
}

export interface TextRules {
  /** In characters (code points), as the standard counts. */
  maxLength?: number;
  /** In bytes of UTF-8, where what is stored has to fit an index. */
  maxBytes?: number;
  mayBeBlank?: boolean;
}

export interface FieldRules {
  isOptional?: boolean;
}

export interface EntryRules {
  /** Entries. Those of a longer list are not looked at. */
  most?: number;
}

const refusals = {
  required: { code: 'required', reason: 'This field is required.' },
  null: { code: 'null', reason: 'This field may not be null.' },
  blank: { code: 'blank', reason: 'This field may not be blank.' },
  notText: { code: 'invalid', reason: 'Not a text.' },
  // It is no longer the number that was sent: JavaScript reads whole numbers exactly up to 2^53.
  inexact: { code: 'invalid', reason: 'A number of this size must be sent as a text.' },
  unstorable: { code: 'invalid', reason: unstorable },
  notUrl: { code: 'invalid', reason: 'Not an absolute http or https URL.' },
  notList: { code: 'not_a_list', reason: 'Not a list.' },
  notObject: { code: 'not_a_dict', reason: 'Not an object.' },
} as const satisfies Record<string, Refusal>;

export const tooLong = (most: number): Refusal => ({ code: 'max_length', reason: `Longer than ${most} characters.` });
export const tooManyBytes = (most: number): Refusal => ({
  code: 'max_length',
  reason: `Longer than ${most} bytes, of which letters beyond ASCII have several.`,
});
const tooMany = (most: number): Refusal => ({ code: 'max_length', reason: `More than ${most} entries.` });

/** The text that `value` stands for: trimmed, and a number as its digits. */
export function readText(value: unknown, { maxLength, maxBytes, mayBeBlank }: TextRules): string | Refusal {
  let text: string;
  if (typeof value === 'string') text = value.trim();
  else if (typeof value === 'number') {
    if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) return refusals.inexact;
    text = String(value);
  } else return value === null ? refusals.null : refusals.notText;
  if (text === '' && !mayBeBlank) return refusals.blank;
  if (!isStorable(text)) return refusals.unstorable;
  if (maxBytes !== undefined && Buffer.byteLength(text) > maxBytes) return tooManyBytes(maxBytes);
  return maxLength !== undefined && isLonger(text, maxLength) ? tooLong(maxLength) : text;
}

/** In characters. A text has at least as many UTF-16 units, so most texts need no exact count. */
export const isLonger = (text: string, than: number): boolean => text.length > than && characters(text) > than;

const characters = (text: string): number => {
  let count = 0;
  for (const _ of text) count++;
  return count;
};

// Refuses what the URL parser would repair silently: spaces, control characters, backslashes, a missing or third slash.
const urlShape = /^https?:\/\/[^\s\p{Cc}\\/][^\s\p{Cc}\\]*$/iu;

export const isWebUrl = (text: string): boolean => urlShape.test(text) && URL.canParse(text);

/** Of a web URL: whether it holds a user or a password, which would be stored and shown with it. */
export function hasCredentials(url: string): boolean {
  const { username, password } = new URL(url);
  return username !== '' || password !== '';
}

const snakeCase = new Map<string, string>();

/** `resourceUrl` as older clients spell it: `resource_url`. Only for the names of our own fields. */
export function snakeCaseOf(name: string): string {
  let spelling = snakeCase.get(name);
  if (spelling === undefined) {
    spelling = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    snakeCase.set(name, spelling);
  }
  return spelling;
}

/**
 * Reads the fields of one JSON object and collects their errors. A method that reads a field returns undefined when the
 * field is absent or was refused. Names may come in camelCase or snake_case. Part of the publishing path, so it builds
 * nothing it does not need.
 */
export class FieldReader {
  constructor(
    private readonly object: JsonObject,
    /** Names the object within the body, for nested ones: `kanalen.0.`. */
    private readonly prefix = '',
    readonly invalidParams: InvalidParam[] = [],
  ) {}

  has(name: string): boolean {
    return this.raw(name) !== undefined;
  }

  raw(name: string): unknown {
    const value = this.object[name];
    return value === undefined ? this.object[snakeCaseOf(name)] : value;
  }

  text(name: string, rules: TextRules & FieldRules = {}): string | undefined {
    const value = this.present(name, rules);
    return value === undefined ? undefined : this.accept(name, readText(value, rules));
  }

  url(name: string, rules: TextRules & FieldRules = {}): string | undefined {
    const text = this.text(name, rules);
    if (text === undefined || text === '' || isWebUrl(text)) return text;
    return this.reject(name, refusals.notUrl);
  }

  list(name: string, rules: FieldRules & EntryRules = {}): unknown[] | undefined {
    const value = this.present(name, rules);
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) return this.reject(name, value === null ? refusals.null : refusals.notList);
    return value.length > (rules.most ?? Infinity) ? this.reject(name, tooMany(rules.most!)) : value;
  }

  textList(name: string, rules: TextRules & FieldRules & EntryRules = {}): string[] | undefined {
    const texts = this.list(name, rules)?.map((item, index) => this.accept(`${name}.${index}`, readText(item, rules)));
    return texts?.every((text) => text !== undefined) ? texts : undefined;
  }

  dictionary(name: string, rules: FieldRules & EntryRules = {}): JsonObject | undefined {
    const value = this.present(name, rules);
    if (value === undefined) return undefined;
    if (!isObject(value)) return this.reject(name, value === null ? refusals.null : refusals.notObject);
    const isTooLarge = rules.most !== undefined && Object.keys(value).length > rules.most;
    return isTooLarge ? this.reject(name, tooMany(rules.most!)) : value;
  }

  /** A reader for each object of a list; their errors are collected here. */
  objects(name: string, rules: FieldRules & EntryRules = {}): FieldReader[] | undefined {
    return this.list(name, rules)?.flatMap((item, index) => {
      const path = `${this.prefix}${name}.${index}`;
      if (isObject(item)) return [new FieldReader(item, `${path}.`, this.invalidParams)];
      this.refuse(`${name}.${index}.${nonFieldErrors}`, 'invalid', refusals.notObject.reason);
      return [];
    });
  }

  refuse(name: string, code: string, reason: string): void {
    if (this.invalidParams.length >= mostInvalidParams) return;
    this.invalidParams.push({ name: (this.prefix + name).slice(0, longestParamName), code, reason });
  }

  /** Passes on the text that `readText` made of a value, and notes a refusal. */
  accept(name: string, result: string | Refusal): string | undefined {
    return typeof result === 'string' ? result : this.reject(name, result);
  }

  private present(name: string, { isOptional }: FieldRules): unknown {
    const value = this.raw(name);
    if (value === undefined && !isOptional) this.reject(name, refusals.required);
    return value;
  }

  private reject(name: string, { code, reason }: Refusal): undefined {
    this.refuse(name, code, reason);
  }
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
