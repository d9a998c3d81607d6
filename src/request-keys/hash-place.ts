/** Where the hash of a request with a secret is stored: it is encrypted for that place. */
export const hashPlace = ({
  application,
  operation,
  key,
}: Record<'application' | 'operation' | 'key', unknown>): string =>
  `once_key.request_hash/${JSON.stringify([application, operation, key])}`;
