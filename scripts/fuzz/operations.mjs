import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';

/**
 * @typedef {Record<string, any>} Schema as OpenAPI 3.0 writes it
 * @typedef {{ name: string, in: string, required?: boolean, schema: Schema }} Parameter
 * @typedef {object} Operation
 * @property {string} id
 * @property {string} method
 * @property {string} path with its parameters in braces, from the root of the server
 * @property {Parameter[]} parameters
 * @property {Schema | undefined} body
 * @property {string[]} statuses that it may answer
 * @property {(schema: Schema) => Schema} resolve follows a reference
 * @property {(status: number, mediaType: string | undefined, body: unknown) => string | undefined} mismatch
 *   what is wrong with an answer of that status, if anything
 */

/**
 * Every operation of an OpenAPI document.
 * @param {any} document
 * @param {string} base that the paths of the document leave out
 * @returns {Operation[]}
 */
export function operationsOf(document, base) {
  const answers = new AnswerSchemas(document);
  const resolve = (/** @type {Schema} */ schema) => {
    const name = /^#\/components\/schemas\/(.+)$/.exec(schema.$ref ?? '')?.[1];
    return name === undefined ? schema : document.components.schemas[name];
  };
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      id: operation.operationId,
      method: method.toUpperCase(),
      path: base + path,
      parameters: operation.parameters ?? [],
      body: operation.requestBody?.content['application/json']?.schema,
      statuses: Object.keys(operation.responses),
      resolve,
      mismatch: (status, mediaType, body) => answers.mismatch(operation.responses[status], mediaType, body),
    })),
  );
}

class AnswerSchemas {
  #ajv = new Ajv({ strict: false });
  /** @type {Map<object, import('ajv').ValidateFunction>} */
  #compiled = new Map();

  /** @param {any} document */
  constructor(document) {
    addFormats.default(this.#ajv);
    // The standard says `uri` of addresses that it takes with letters of any language, and sends back as they came.
    this.#ajv.addFormat('uri', (value) => URL.canParse(value));
    const schemas = closed(document.components.schemas);
    for (const schema of Object.values(schemas)) answered(schema);
    this.#ajv.addSchema({ $id: 'document', components: { schemas } });
  }

  /**
   * @param {any} response of the document
   * @param {string | undefined} mediaType
   * @param {unknown} body
   * @returns {string | undefined}
   */
  mismatch(response, mediaType, body) {
    if (!response.content) return body === undefined ? undefined : 'a body, where the document has none';
    const content = response.content[mediaType ?? ''];
    if (!content) return `${mediaType}, which the document does not have for this status`;
    let validate = this.#compiled.get(content);
    if (!validate) {
      const text = JSON.stringify(closed(content.schema)).replaceAll('"#/components/', '"document#/components/');
      validate = this.#ajv.compile(JSON.parse(text));
      this.#compiled.set(content, validate);
    }
    return validate(body) ? undefined : this.#ajv.errorsText(validate.errors);
  }
}

/**
 * Answers may get further fields in a later version, so their schemas allow any. Here one that is not documented is an
 * error.
 * @template T
 * @param {T} schema or several, under their names
 * @returns {T} without any other fields than those that it names
 */
export function closed(schema) {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return /** @type {T} */ (schema.map(closed));
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  const isOpen = copy.type === 'object' && 'properties' in copy && !('additionalProperties' in copy);
  return /** @type {T} */ (isOpen ? { ...copy, additionalProperties: false } : copy);
}

/**
 * A property that is only sent is absent from an answer, and so cannot be required; one that is only answered has to be
 * there.
 * @param {Schema} schema
 */
function answered(schema) {
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (property.readOnly) schema.required = [...(schema.required ?? []), name];
    if (property.writeOnly) schema.properties[name] = { not: {} };
  }
}
