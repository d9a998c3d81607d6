import { createHmac } from 'node:crypto';

/**
 * A token as clients of the Notificaties API make them (HS256). The server accepts it until `JWT_EXPIRY` seconds after
 * its `iat`, if it does not say itself that it ends sooner.
 */
export function makeToken(clientId: string, secret: string, nowMs: number, validSeconds?: number): string {
  const iat = Math.floor(nowMs / 1000);
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

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
