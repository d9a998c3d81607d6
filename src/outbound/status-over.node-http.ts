import { request } from 'node:http';
import type { Socket } from 'node:net';

export interface PostRequest {
  headers: Record<string, string>;
  /**
   * Bytes: of a text Node would write the headers in UTF-8 as well, and not as those of a call with a notification,
   * byte by byte (Latin-1).
   */
  body: Buffer;
  signal: AbortSignal;
}

/**
 * Posts over a connection that no other call uses, and destroys it at the status of the answer: nothing more is read.
 * By Node's own client, which skips informational (1xx) responses, as the calls with notifications do: undici takes
 * `100 Continue` for an error. No redirect is followed.
 * @throws {Error} when there is no answer; the caller then destroys the connection
 */
export function statusOver(
  socket: Socket,
  { host, pathname, search }: URL,
  { headers, body, signal }: PostRequest,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request({
      // `http:` also where the socket speaks TLS: this client is only to write to it.
      createConnection: () => socket,
      path: pathname + search,
      method: 'POST',
      headers: { ...headers, host },
      signal,
    });
    call.on('error', reject);
    // After an answer, or an error, this changes nothing. It is all that Node says of one that changes to another
    // protocol.
    call.on('close', () => reject(new Error('the connection was closed without an answer')));
    call.on('response', ({ statusCode = 0 }) => {
      resolve(statusCode);
      socket.destroy(); // only the status counts: the body, however long, is not read
    });
    call.end(body);
  });
}
