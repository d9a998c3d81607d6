import { expect, it } from 'vitest';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { AdminClient } from './admin-client.js';
import { exits, type CommandFailure } from './exits.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

it.each(['https://ops:s3cret@heraut.example.org', 'ops:s3cret@heraut.example.org', 'https://ops:s3/cret@h'])(
  'a user or password in its URL is not sent, and not shown: %s',
  (url) => {
    const refused = { exit: exits.wrongUse, message: expect.not.stringMatching(/s3|cret/) };
    expect(() => new AdminClient(url, () => 'token')).toThrow(expect.objectContaining(refused));
  },
);

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

it.each([301, 302, 303, 307, 308])('a redirect (%i) is told with where it leads, and not followed', async (status) => {
  const asked: (string | undefined)[] = [];
  const server = createHttpServer((request, response) => {
    asked.push(request.url);
    response.writeHead(status, { location: `https://elsewhere.example.org${request.url}` }).end('moved');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = new AdminClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => 'token');
  const path = '/admin/v1/configuration/apply';
  const refusal = {
    exit: exits.unreachable,
    message: expect.stringContaining(`${status}, a redirect to https://elsewhere.example.org${path}, `),
  };
  await expect(client.request('POST', path, { body: { secret: 's' } })).rejects.toMatchObject(refusal);
  await expect(client.open(path, {})).rejects.toMatchObject(refusal);
  await expect(client.look(path, (_body): _body is unknown => true)).rejects.toMatchObject(refusal);
  expect(asked).toEqual([path, path, path]);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const mayBeDone = /It may have been done all the same/;

it('a change whose answer is lost may have been made, which is said; what changes nothing is not', async () => {
  const server = createHttpServer((request, response) => {
    request.resume().on('end', () => {
      if (request.url === '/proxy') response.writeHead(502).end('<p>');
      else request.socket.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new HastyClient(url, () => 'token');
  const failure = async (...asked: Parameters<AdminClient['request']>) =>
    (await client.request(...asked).catch((error: unknown) => error)) as CommandFailure;
  for (const path of ['/cut', '/proxy']) {
    const [change, key, read] = await Promise.all([
      failure('POST', path, { body: {} }),
      failure('POST', path, { body: {}, isRepeatable: true }),
      failure('GET', path),
    ]);
    expect([path, change.exit, key.exit, read.exit]).toEqual([path, 3, 3, 3]);
    expect(change.message).toMatch(mayBeDone);
    expect(key.message).not.toMatch(mayBeDone);
    expect(read.message).not.toMatch(mayBeDone);
  }
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

it('a change that was not sent is not said to have been made, perhaps', async () => {
  const nobody = createServer().listen(0, '127.0.0.1');
  await once(nobody, 'listening');
  const { port } = nobody.address() as AddressInfo;
  await new Promise((resolve) => nobody.close(resolve));
  const client = new AdminClient(`http://127.0.0.1:${port}`, () => 'token');
  const failure = (await client.request('POST', '/', { body: {} }).catch((error: unknown) => error)) as CommandFailure;
  expect(failure.message).toContain('ECONNREFUSED');
  expect(failure.message).not.toMatch(mayBeDone);
});
