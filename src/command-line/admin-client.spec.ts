import { expect, it } from 'vitest';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { AdminClient } from './admin-client.js';
import { exits } from './exits.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

class HastyClient extends AdminClient {
  protected override readonly timeoutMs = 500;
}

it.each(['nothing', 'half of it'])('an answer of which %s comes is not waited for without end', async (what) => {
  const server = createServer((socket) => {
    socket
      .on('error', () => {})
      .once('data', () => {
        if (what === 'half of it')
          socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{');
        // A limit to which nothing refers but what it is to end is gone then.
        setImmediate(collectGarbage);
      });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = new HastyClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => 'token');
  await expect(client.request('GET', '/admin/v1/alerts')).rejects.toMatchObject({
    exit: exits.unreachable,
    message: expect.stringContaining('it does not answer'),
  });
  await new Promise((resolve) => server.close(resolve)); // without a connection
});
