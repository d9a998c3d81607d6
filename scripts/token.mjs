// `node scripts/token.mjs`: a token of the superuser, made from SUPERUSER_CLIENT_ID and SUPERUSER_SECRET in the environment.
import { createHmac } from 'node:crypto';
import { pathToFileURL } from 'node:url';

/**
 * A token as clients of the Notificaties API make them. The server accepts it until JWT_EXPIRY seconds after now, if it does
 * not say itself that it ends sooner.
 * @param {string} clientId
 * @param {string} secret
 * @param {number} [validSeconds]
 */
export function makeToken(clientId, secret, validSeconds) {
  const encode = (/** @type {object} */ part) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const iat = Math.floor(Date.now() / 1000);
  const claims = {
    iss: clientId,
    client_id: clientId,
    iat,
    ...(validSeconds === undefined ? {} : { exp: iat + validSeconds }),
    user_id: '',
    user_representation: '',
  };
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { SUPERUSER_CLIENT_ID, SUPERUSER_SECRET } = process.env;
  if (SUPERUSER_SECRET) console.log(makeToken(SUPERUSER_CLIENT_ID || 'heraut', SUPERUSER_SECRET));
  else {
    console.error('SUPERUSER_SECRET is not set in this terminal.');
    process.exitCode = 1;
  }
}
