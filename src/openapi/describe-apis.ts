import type { INestApplication } from '@nestjs/common';
import { SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { isDeepStrictEqual } from 'node:util';
import { describeOperations, namedSchemas } from './describe-operation.js';
import type { NamedSchema } from './schema.js';

type Paths = OpenAPIObject['paths'];

/** An API of this server, and the paths of its documents. */
export interface DescribedApi {
  /** Its paths begin with this; the document leaves it out. Empty: the paths that no other API has. */
  base: string;
  /** Everything but paths and schemas: those come from the controllers. */
  outline: Omit<OpenAPIObject, 'paths'>;
  /** Paths that are served beside the controllers. */
  otherPaths?: Paths;
  /** Paths of the page to read and to try it out, and of the documents. */
  page: string;
  json: string[];
  yaml: string[];
}

/** The version every document is written in: the clients of the Notificaties API refuse 3.1. */
export const openApiVersion = '3.0.3';

/** The scan reads only the paths of the controllers; each API adds the rest. */
const unnamed = { openapi: openApiVersion, info: { title: '', version: '' } };

/** The document of each API, from one scan of all controllers. */
export function describeApis(app: INestApplication, apis: readonly DescribedApi[]): OpenAPIObject[] {
  describeOperations();
  const everything = SwaggerModule.createDocument(app, unnamed, { autoTagControllers: false }).paths;
  const bases = apis.map(({ base }) => base).toSorted((one, other) => other.length - one.length);
  const baseOf = (path: string) => bases.find((base) => base === '' || path.startsWith(`${base}/`));
  return apis.map(({ base, outline, otherPaths }) => {
    const own = Object.entries(everything).filter(([path]) => baseOf(path) === base);
    const [paths, schemas] = extractSchemas(
      Object.fromEntries(own.map(([path, item]) => [path.slice(base.length), item])),
    );
    return {
      ...outline,
      paths: { ...paths, ...otherPaths },
      components: { ...outline.components, schemas },
    };
  });
}

/**
 * Removes from each operation the schemas it carries, and returns both.
 * @throws {Error} when two schemas have the same name
 */
export function extractSchemas(paths: Paths): [Paths, NamedSchema] {
  const schemas: NamedSchema = {};
  const without = Object.entries(paths).map(([path, item]) => [
    path,
    Object.fromEntries(
      Object.entries(item as Record<string, Record<string, unknown>>).map(([method, operation]) => {
        const { [namedSchemas]: named = {}, ...rest } = operation;
        for (const [name, schema] of Object.entries(named as NamedSchema)) {
          if (schemas[name] && !isDeepStrictEqual(schemas[name], schema)) {
            throw new Error(`Two schemas have the name ${name}`);
          }
          schemas[name] = schema;
        }
        return [method, rest];
      }),
    ),
  ]);
  const sorted = Object.entries(schemas).toSorted(([one], [other]) => one.localeCompare(other));
  return [Object.fromEntries(without) as Paths, Object.fromEntries(sorted)];
}
