import { request as open } from 'node:http';
import type { Socket } from 'node:net';
import type { Connector } from '../outbound/connector.js';
import type { Call } from './call.js';
import { Connection } from './connection.js';
import type { ParsedUrl } from './parsed-url.js';
import type { WebhookRequest } from './webhook-client.js';

/**
 * A call on a new connection that no other call uses, by Node's own client, which skips every informational response
 * (RFC 9110 §15.2). The connection is made first: until it is ready, TLS included, certainly no byte of the request has
 * left.
 */
export function sendOnOwnConnection(call: Call, url: ParsedUrl, request: WebhookRequest, connector: Connector): void {
  const connection = new Connection(connector);
  call.carriedBy(connection, () => connection.stopConnecting());
  connection.connect(url, (error, socket) => {
    if (error) return call.failWith(error);
    if (request.mayBeOvertaken) call.endIfStoodStill();
    if (call.isOver) return void socket.destroy();
    try {
      write(call, url, request, socket);
    } catch (unfit) {
      socket.destroy();
      call.failWith(unfit as Error); // e.g. a header value HTTP does not allow
    }
  });
}

function write(call: Call, { host, path }: ParsedUrl, { headers, body }: WebhookRequest, socket: Socket): void {
  // `http:` also where the socket speaks TLS: this client is only to write to it.
  const outgoing = open({ createConnection: () => socket, method: 'POST', path, headers: { host, ...headers } });
  const failed = (error: Error) => call.failWith(error);
  outgoing.on('error', failed);
  // However it ends, Node says this; where an answer was complete, or an error told, it changes nothing.
  outgoing.on('close', () => call.closed());
  outgoing.on('upgrade', () => {
    call.fail('the receiver changed to another protocol');
    socket.destroy();
  });
  outgoing.on('socket', () => socket.once('data', () => call.firstByte()));
  outgoing.on('response', (answer) => {
    answer.on('error', failed);
    answer.on('data', (chunk: Buffer) => call.data(chunk));
    answer.on('end', () => {
      call.complete();
      // Node waits until all of the request is written, which a receiver that reads no further can put off for ever.
      socket.destroy();
    });
    const status = answer.statusCode ?? 0;
    if (status >= 200) return call.head(status, answer.headers);
    call.fail(`the status of the answer is ${status}`);
    socket.destroy();
  });
  call.begin(false, () => socket.destroy());
  outgoing.end(body);
}
