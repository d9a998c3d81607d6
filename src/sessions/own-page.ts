import type { FastifyRequest } from 'fastify';
import { readingMethods } from '../auth/authorization.guard.js';
import { PermissionProblem } from '../infra/http/problem.js';
import type { ConsoleCookies } from './console-cookies.js';

/**
 * `1`: the user did something. `0`: the page asks by itself, which does not keep a session from ending, whatever its
 * method.
 */
const consoleHeader = 'x-heraut-console';

/** Whether a request counts as use of the session. */
export const isUse = ({ headers }: FastifyRequest): boolean => headers[consoleHeader] !== '0';

/** Whether a page of this origin sent the request, or a program that says that it is the console. */
export const isOfConsole = ({ headers }: FastifyRequest): boolean =>
  headers[consoleHeader] !== undefined || headers['sec-fetch-site'] === 'same-origin';

/**
 * A browser sends its cookies whichever page has caused a request. One that changes something must therefore have a
 * header that a page of another origin cannot give it without asking this server first, and must not say that it comes
 * from elsewhere.
 * @throws {PermissionProblem}
 */
export function requireOwnPage(request: FastifyRequest, cookies: ConsoleCookies): void {
  if (readingMethods.has(request.method)) return;
  const { [consoleHeader]: header, 'sec-fetch-site': site, origin } = request.headers;
  const isOwn =
    site === undefined ? origin === undefined || cookies.isOwnOrigin(request, origin) : site === 'same-origin';
  if ((header === '1' || header === '0') && isOwn) return;
  throw new PermissionProblem('cross-site', 'In a session, only pages of the console may change something.');
}
