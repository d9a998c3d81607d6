import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { extractSchemas } from './describe-apis.js';
import { namedSchemas } from './describe-operation.js';
import { fieldsOf, openApiSchema } from './schema.js';

const inner = z.strictObject({ size: z.int().min(1).max(9).default(3) }).meta({ id: 'Inner' });
const outer = z.strictObject({ inner, list: z.array(inner) }).meta({ id: 'Outer' });

const paths = (...named: object[]) =>
  Object.fromEntries(named.map((schemas, index) => [`/${index}`, { get: { responses: {}, [namedSchemas]: schemas } }]));

describe('a zod schema in a document', () => {
  it('is referred to by its name, and brings the named schemas inside of it', () => {
    const { schema, named } = openApiSchema(z.array(outer), 'input');
    expect(schema).toEqual({ type: 'array', items: { $ref: '#/components/schemas/Outer' } });
    expect(named).toMatchObject({
      Outer: { properties: { list: { items: { $ref: '#/components/schemas/Inner' } } } },
      Inner: { properties: { size: { type: 'integer', default: 3 } } },
    });
  });

  it('requires a field with a default in an answer, not in a request', () => {
    expect(openApiSchema(inner, 'input').named.Inner?.required).toBeUndefined();
    expect(openApiSchema(inner, 'output').named.Inner?.required).toEqual(['size']);
  });

  it.each([
    [z.int(), 'int64'],
    [z.int().min(0), 'int64'],
    [z.int().max(9), 'int64'],
    [
      z
        .int()
        .min(0)
        .max(2 ** 31),
      'int64',
    ],
    [z.int().min(0).nullable(), 'int64'],
    [z.coerce.number().int().min(0), 'int64'],
    [
      z
        .int()
        .min(-(2 ** 31))
        .max(2 ** 31 - 1),
      undefined,
    ],
    [z.number(), undefined],
  ])('says that an integer takes more than 32 bits where it may: %#', (schema, format) => {
    for (const side of ['input', 'output'] as const) expect(openApiSchema(schema, side).schema.format).toBe(format);
  });

  it('may have further fields in an answer, and none in a request', () => {
    const nested = z.strictObject({ inner: z.strictObject({ a: z.string() }) });
    expect(JSON.stringify(openApiSchema(nested, 'input'))).toContain('"additionalProperties":false');
    for (const side of ['input', 'output'] as const)
      expect(JSON.stringify(openApiSchema(nested, side, true))).not.toContain('additionalProperties');
    expect(openApiSchema(z.record(z.string(), z.string()), 'output').schema.additionalProperties).toBeTruthy();
  });

  it('says of each field whether it is required, as parameters', () => {
    const fields = fieldsOf(z.object({ one: z.string().describe('First.'), two: z.string().optional() }));
    expect(fields).toEqual([
      { name: 'one', required: true, description: 'First.', schema: { type: 'string' } },
      { name: 'two', required: false, description: undefined, schema: { type: 'string' } },
    ]);
  });
});

describe('the schemas of a document', () => {
  it('are those that its operations name, in the order of their names; the operations keep none', () => {
    const [left, schemas] = extractSchemas(
      paths({ B: { type: 'string' } }, { A: { type: 'integer' }, B: { type: 'string' } }),
    );
    expect(Object.keys(schemas)).toEqual(['A', 'B']);
    expect(left).toEqual({ '/0': { get: { responses: {} } }, '/1': { get: { responses: {} } } });
  });

  it('cannot be two of one name', () => {
    expect(() => extractSchemas(paths({ A: { type: 'string' } }, { A: { type: 'integer' } }))).toThrow('the name A');
  });
});
