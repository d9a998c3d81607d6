/** Its parts that differ from request to request; `vite build` leaves them where they stand in web/index.html. */
const nonceMark = /__NONCE__/g;
const baseMark = '__BASE__';

/**
 * The page of the console for one request.
 * @param template web/dist/index.html
 * @param path of the request, below `/console/`
 * @param nonce that the policy of the same answer names
 */
export function pageFor(template: string, path: string, nonce: string): string {
  // Relative, so that it is right behind a proxy that serves the console under a prefix of its own.
  const base = '../'.repeat(path.split('/').length - 1) || './';
  return template.replace(baseMark, base).replace(nonceMark, nonce);
}

/**
 * The policy of that page (CSP level 3): scripts, styles, images and calls of this server only; no script in the page.
 * The component library writes style elements, which have the nonce.
 */
export const pagePolicy = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "object-src 'none'",
    "base-uri 'self'",
    "frame-ancestors 'none'",
    "form-action 'self'",
  ].join('; ');
