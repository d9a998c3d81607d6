import * as z from 'zod';
import { configurationSchema } from './configuration-schema.js';
import { referenceSchema } from './resolve-references.js';

type Schema = Record<string, unknown>;

const reference = { $ref: '#/definitions/Reference' };
const scalarTypes = new Set(['string', 'number', 'integer', 'boolean']);

/**
 * JSON Schema (draft 7) of a configuration file: in the place of each scalar there may be a reference, or a number for
 * a text.
 */
export function editorSchema(): Schema {
  const own = z.toJSONSchema(configurationSchema, { io: 'input', target: 'draft-7' }) as Schema;
  const { definitions = {}, ...root } = withReferences(own) as Schema & { definitions?: Schema };
  const valueFrom = z.toJSONSchema(referenceSchema, { io: 'input', target: 'draft-7' }) as Schema;
  delete valueFrom.$schema;
  return {
    ...root,
    title: 'Configuration of Heraut',
    definitions: {
      ...(definitions as Schema),
      Reference: {
        description: 'A value that stands elsewhere.',
        type: 'object',
        properties: { value_from: valueFrom },
        required: ['value_from'],
        additionalProperties: false,
      },
    },
  };
}

function withReferences(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withReferences);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { id: _, ...given } = schema as Schema;
  // A constant tells the forms of a union apart; an editor needs it as it is.
  if (scalarTypes.has(given.type as string) && !('const' in given)) {
    const { description, ...scalar } = given;
    return { ...(description !== undefined && { description }), anyOf: [asWritten(scalar), reference] };
  }
  return Object.fromEntries(
    Object.entries(given).map(([key, value]) => [
      key,
      key === 'properties' || key === 'definitions'
        ? eachOf(value as Schema)
        : nested.has(key)
          ? withReferences(value)
          : value,
    ]),
  );
}

const nested = new Set(['items', 'anyOf', 'oneOf', 'allOf', 'additionalProperties']);

const eachOf = (schemas: Schema): Schema =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withReferences(schema)]));

/** A number, without quotes, is read as it is written where a text is wanted. */
function asWritten(scalar: Schema): Schema {
  const isFree = scalar.type === 'string' && !('enum' in scalar) && !('format' in scalar) && !('pattern' in scalar);
  return isFree ? { ...scalar, type: ['string', 'number', 'boolean'] } : scalar;
}
