import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect, type Socket } from 'node:net';
import { Api, superuser } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { signToken } from '../support/tokens.js';

let api: Api;
const sockets: Socket[] = [];

beforeAll(async () => {
  api = await Api.start();
});

afterAll(() => {
  for (const socket of sockets) socket.destroy();
  return api.close();
});

const large = 'x'.repeat(1_000_000);
const send = (token?: string | null) => api.post('/kanaal', large, { token });

/** Announces bodies until one is refused. */
const refusal = (token: string | null) =>
  eventually(async () => {
    const { hostname, port } = new URL(api.origin);
    for (let nr = 0; nr < 8; nr++) {
      const socket = connect(Number(port), hostname).on('error', () => {}); // its time is over
      socket.write(
        'POST /api/v1/kanaal HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n',
      );
      sockets.push(socket);
    }
    const answer = await send(token);
    return answer.status === 503 && answer;
  }, 'the room of strangers to be used up');

it('bodies that strangers announce and do not send keep out strangers, and no application', async () => {
  const refused = await refusal(null);
  expect(refused.json).toMatchObject({
    code: 'too-many-bodies',
    type: `${api.origin}/ref/fouten/ServiceUnavailable/`,
  });
  expect(refused.headers.get('retry-after')).toBe('5');
  const guess = signToken({ ...superuser, secret: 'not the secret of the superuser' });
  expect((await refusal(guess)).json.code).toBe('too-many-bodies');
  expect((await send()).json.code).toBe('parse_error');
  expect((await api.post('/kanaal', '{', { token: null })).status).toBe(403);
});
