const slash = '/'.charCodeAt(0);

/**
 * A server must take a whole URL as the target of a request as well as a path (RFC 9112 §3.2.2): clients that are told
 * of a proxy send it. The router finds its path, but what looks at `request.url` would not.
 * @param target as it stands in the request
 */
export function originFormOf(target: string): string {
  if (target.charCodeAt(0) === slash) return target;
  const origin = /^https?:\/\/[^/?]*/i.exec(target);
  if (!origin) return target; // `*`, or nothing that has a route
  const rest = target.slice(origin[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}
