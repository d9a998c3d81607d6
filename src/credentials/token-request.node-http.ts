import { request } from 'node:http';
import type { Socket } from 'node:net';
import { CallTime } from '../infra/call-time.js';
import { userAgent } from '../infra/user-agent.js';
import { connectTo, type Connector } from '../outbound/connector.js';
import type { OAuth2Authorization } from './credentials.js';

const mostBytes = 65_536;

export interface TokenAnswer {
  status: number;
  /** The whole body. */
  text: string;
}

/**
 * Asks a token endpoint for a token (RFC 6749 §4.4.2). No redirect is followed.
 * @throws {Error} when there is no answer, or it is too long or late
 */
export async function requestToken(
  credentials: OAuth2Authorization,
  connect: Connector,
  closing: AbortSignal,
  longestMs = 10_000,
): Promise<TokenAnswer> {
  const { tokenUrl, clientId, clientSecret, scope, clientAuthentication } = credentials;
  const form = new URLSearchParams({ grant_type: 'client_credentials' });
  if (scope !== null) form.set('scope', scope);
  const headers: Record<string, string> = {};
  if (clientAuthentication === 'basic') headers.authorization = basic(clientId, clientSecret);
  else {
    form.set('client_id', clientId);
    form.set('client_secret', clientSecret);
  }
  const time = new CallTime(closing);
  let socket: Socket | undefined;
  try {
    const [signal, url] = [time.within(longestMs), new URL(tokenUrl)];
    socket = await connectTo(connect, url, signal);
    return await post(url, socket, headers, form.toString(), signal);
  } finally {
    time.end();
    socket?.destroy();
  }
}

/** Each of the two is encoded as in a form first (RFC 6749 §2.3.1). */
export function basic(clientId: string, clientSecret: string): string {
  const encoded = [clientId, clientSecret].map((text) => new URLSearchParams({ '': text }).toString().slice(1));
  return `Basic ${Buffer.from(encoded.join(':')).toString('base64')}`;
}

function post(
  { host, pathname, search }: URL,
  socket: Socket,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
): Promise<TokenAnswer> {
  return new Promise((resolve, reject) => {
    const call = request({
      // `http:` also where the socket speaks TLS: this client is only to write to it.
      createConnection: () => socket,
      method: 'POST',
      path: pathname + search,
      headers: {
        host,
        accept: 'application/json',
        'user-agent': userAgent,
        'content-type': 'application/x-www-form-urlencoded',
        connection: 'close',
        ...headers,
      },
      signal,
    });
    call.on('error', reject);
    call.on('close', () => reject(new Error('the connection was closed')));
    call.on('response', (answer) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      answer.on('error', reject);
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > mostBytes) reject(new Error(`the answer is longer than ${mostBytes} bytes`));
        else chunks.push(chunk);
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }));
    });
    call.end(body);
  });
}
