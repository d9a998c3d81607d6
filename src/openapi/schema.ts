import type { OpenAPIObject } from '@nestjs/swagger';
import * as z from 'zod';

type NamedSchemas = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>;
export type OpenApiSchema = Exclude<NamedSchemas[string], { $ref: string }>;
export type NamedSchema = Record<string, OpenApiSchema>;

/** `input`: the values a caller may send. `output`: the values the server answers. */
export type Side = 'input' | 'output';

/**
 * A zod schema as OpenAPI 3.0 writes it. Schemas with a name (`.meta({ id })`) are referred to under
 * `#/components/schemas`, and are in `named`, wherever they stand inside of `schema`. They have no `title`: generators
 * of clients would take it for the name of the class.
 * @param isAnswer then it may get further fields in a later version: a client that is generated must ignore those
 */
export function openApiSchema(
  schema: z.ZodType,
  side: Side,
  isAnswer = side === 'output',
): { schema: OpenApiSchema; named: NamedSchema } {
  const override = ({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }) => {
    if (jsonSchema.type === 'integer' && !isInt32(jsonSchema)) jsonSchema.format = 'int64';
    if (isAnswer && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  };
  const text = JSON.stringify(z.toJSONSchema(schema, { target: 'openapi-3.0', io: side, override }));
  const { definitions = {}, ...rest } = JSON.parse(
    text.replaceAll('"$ref":"#/definitions/', '"$ref":"#/components/schemas/'),
  ) as OpenApiSchema & { definitions?: NamedSchema };
  return { schema: rest, named: definitions };
}

/** Generators for Java, Go and C# make an integer of 32 bits where no format says otherwise. */
const isInt32 = ({ minimum = -Infinity, maximum = Infinity }: z.core.JSONSchema.BaseSchema): boolean =>
  minimum >= -(2 ** 31) && maximum < 2 ** 31;

export interface Field {
  name: string;
  required: boolean;
  description: string | undefined;
  schema: OpenApiSchema;
}

/** The fields of an object, as parameters and headers are written: each for itself. */
export function fieldsOf(object: z.ZodObject | undefined): Field[] {
  if (!object) return [];
  const { properties = {}, required = [] } = openApiSchema(object, 'input').schema;
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = property as OpenApiSchema;
    return { name, required: required.includes(name), description, schema };
  });
}
