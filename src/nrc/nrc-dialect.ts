import type { Dialect } from '../infra/http/dialect.js';
import { nonFieldErrors } from './fields.js';
import { titleOf } from './problem-classes.js';
import { problemPage } from './problem-pages.js';

/** Every URL of the Notificaties API starts with this. */
export const apiPath = '/api/v1';

/** The version of the standard that is served. */
export const apiVersion = '1.0.1';

const headers = ['API-version', apiVersion];
const none: string[] = [];

/** The additions of the Dutch API standard to HTTP: its version in a header, and its names for problems. */
export const nrcDialect: Dialect = {
  headersOf: (url) => (url.startsWith(apiPath) ? headers : none),
  problemPage,
  problemTitle: titleOf,
  wholeInput: nonFieldErrors,
};
