import type { HeaderList } from './response-with-headers.js';

/**
 * An answer is data: a browser that is led to one runs nothing of it, loads nothing for it and shows it in no frame.
 */
const nothing = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * The headers of every answer (OWASP REST Security Cheat Sheet). No Strict-Transport-Security: it speaks for all that a
 * name serves, and for a year, so it is for the proxy that has the certificate.
 */
export const securityHeaders: HeaderList = [
  ...['content-security-policy', nothing],
  ...['x-content-type-options', 'nosniff'],
  ...['x-frame-options', 'DENY'],
  ...['referrer-policy', 'no-referrer'],
];

/**
 * For each answer that has none of its own. A caller who is known by a cookie sends no `Authorization`, by which caches
 * that several people share tell that an answer is not for all of them.
 */
export const keptByCallerAlone: HeaderList = ['cache-control', 'private, no-cache'];

/**
 * The policy of a page of Swagger UI: scripts, styles and images of this server, calls to this server, and no script in
 * the page. Its template and its program write styles into the page, and its images are `data:` in a style sheet.
 */
export const documentationPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
