import { once } from 'node:events';
import { connect } from 'node:net';

/**
 * Sends bytes that an HTTP client would not, and gives back all that comes until the server ends the connection: it is
 * to be asked for that, or to have a reason. A client that ended its side first would get no answer that takes a
 * moment.
 */
export async function sendRaw(origin: string, text: string): Promise<string> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  let answer = '';
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
  socket.write(text);
  await once(socket, 'close');
  return answer;
}
