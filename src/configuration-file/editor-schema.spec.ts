import { describe, expect, it } from 'vitest';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { editorSchema } from './editor-schema.js';

const ajv = new Ajv({ strict: false, allErrors: true });
addFormats.default(ajv);
const validate = ajv.compile(editorSchema());
const example = () =>
  parse(readFileSync(new URL('../../docs/heraut.example.yaml', import.meta.url), 'utf8')) as {
    subscriptions: Record<string, unknown>[];
  };

describe('the schema for editors', () => {
  it('accepts the example', () => {
    expect([validate(example()), validate.errors]).toEqual([true, null]);
  });

  it.each<[string, Record<string, unknown>]>([
    ['a field that does not exist', { retries: 3 }],
    ['a number out of its limits', { maxConcurrency: 0 }],
    ['a reference with something beside it', { callbackUrl: { value_from: { env: 'X' }, default: 'y' } }],
    ['a reference to nothing', { callbackUrl: { value_from: {} } }],
    ['an authorization of an unknown kind', { authorization: { kind: 'basic' } }],
  ])('refuses %s', (_, fields) => {
    const configuration = example();
    Object.assign(configuration.subscriptions[0]!, fields);
    expect(validate(configuration)).toBe(false);
  });
});
