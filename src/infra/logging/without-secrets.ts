import { pino } from 'pino';

/** Names of fields that are never written, in the event itself and in the objects in it. */
const secrets = new Set(['secret', 'clientSecret', 'auth', 'authorization', 'credentials', 'password', 'token']);
/**
 * Drivers put the values of a failed statement, or of a command to Redis, into its error: secrets and notifications
 * among them, and the password of a connection that was refused. `new URL` puts the whole text into `input`, which a
 * caller may have chosen.
 */
const givenValues = new Set(['parameters', 'detail', 'command', 'input']);
const censored = '[secret]';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Whether JSON.stringify writes all of an event and no secret: it is no error itself, whose message and stack would be
 * missing, no field has the name of a secret, and no value is an object.
 */
export function isPlain(event: object): boolean {
  if (event instanceof Error) return false;
  let hasFields = false;
  for (const name in event) {
    const value = (event as Fields)[name];
    if (!isPlainValue(value) || secrets.has(name)) return false;
    hasFields ||= value !== undefined;
  }
  return hasFields;
}

function isPlainValue(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'undefined':
      return true;
    default:
      return value === null;
  }
}

/**
 * The event without its secrets. Not pino's own `redact`, which looks for every path in every event and costs as much
 * as all else that a line costs: nearly no event has a field of these names, and this one is returned as it is.
 */
export function withoutSecrets(event: object): object {
  const fields = event as Fields;
  for (const name in fields) {
    if (secrets.has(name) || isWithSecret(fields[name])) return censor(fields);
  }
  return event;
}

function isWithSecret(value: unknown): value is Fields {
  // An error is made readable by itself.
  if (typeof value !== 'object' || value === null || value instanceof Error) return false;
  for (const name in value) if (secrets.has(name)) return true;
  return false;
}

const censor = (fields: Fields): Fields =>
  mapFields(fields, (name, value) => {
    if (secrets.has(name)) return censored;
    return isWithSecret(value) ? mapFields(value, (inner, each) => (secrets.has(inner) ? censored : each)) : value;
  });

const mapFields = (fields: Fields, map: (name: string, value: unknown) => unknown): Fields =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, map(name, value)]));

/** An error with its stack and its causes, without secrets. For what is no error: itself. */
export function readableError(error: unknown): unknown {
  const serialized: unknown = pino.stdSerializers.errWithCause(error as Error);
  return isSerializedError(serialized) ? censorError(serialized) : error;
}

function censorError(serialized: Fields): Fields {
  return mapFields(serialized, (name, value) => {
    if (secrets.has(name) || givenValues.has(name)) return censored;
    if (Array.isArray(value)) return value.map((each: unknown) => (isSerializedError(each) ? censorError(each) : each));
    return isSerializedError(value) ? censorError(value) : value;
  });
}

/** The cause of an error, one of several, or the driver's error in one of the ORM. */
const isSerializedError = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && 'stack' in value;
