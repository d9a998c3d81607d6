import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';

const file = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const runbook = readFileSync(file('docs/operations.md'), 'utf8');
/** The block of the runbook in which that stands. */
const printed = (words: string) =>
  [...runbook.matchAll(/^ *```sh\n([^]*?)^ *```$/gm)]
    .map(([, block]) => block!)
    .find((block) => block.includes(words))!;

const run = (script: string, environment: Record<string, string> = {}) =>
  new Promise<{ status: unknown; out: string; err: string }>((resolve) => {
    const env = { PATH: process.env.PATH, ...environment };
    execFile('sh', ['-c', script], { env }, (error, out, err) => resolve({ status: error?.code ?? 0, out, err }));
  });

describe('the shell that the runbook prepares', () => {
  it('says so where another program answers in place of metrics', async () => {
    const other = createServer((_request, response) => response.writeHead(401).end()).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { out, err } = await run(`${printed('metric()')}\nmetric heraut_ http://127.0.0.1:${port}`);
    other.close();
    expect([out, err]).toEqual(['', expect.stringContaining('401')]);
  });
});

describe('the loop of the runbook that brings forward what waits', () => {
  const subscription = randomUUID();
  let server: Server;
  let origin: string;
  let pages: Record<string, { deliveries: string[]; next: string | null }>;
  let lists: string[];
  let retried: string[];

  beforeAll(async () => {
    server = createServer(respond).listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    [lists, retried] = [[], []];
  });

  function respond(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url!, origin);
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (request.method === 'POST') {
      const id = pathname.split('/')[4]!;
      retried.push(id);
      answer(pathname.endsWith(`/${subscription}/retry`) ? (id === lastOf('first') ? 409 : 202) : 404, {});
      return;
    }
    lists.push(String(searchParams));
    const page = pages[searchParams.get('cursor') ?? 'first'];
    if (!page) return void answer(503, { status: 503, title: 'Unavailable', detail: 'Postgres is away.' });
    const deliveries = page.deliveries.map((notificationId) => ({
      notificationId,
      subscriptionId: subscription,
      acceptedAt: '2026-11-22T16:07:10.000Z',
    }));
    answer(200, { deliveries, nextCursor: page.next, searchedTo: null });
  }

  const lastOf = (page: string) => pages[page]!.deliveries.at(-1);
  const some = (count: number) => Array.from({ length: count }, () => randomUUID());
  function bringForward() {
    const shell = `heraut() { node '${file('dist/heraut.js')}' "$@"; }; HERAUT=$HERAUT_URL S=${subscription}\n`;
    const environment = { HERAUT_URL: origin, SUPERUSER_SECRET: 'secret-of-the-superuser' };
    return run(shell + printed('deliveries list --subscription "$1"'), environment);
  }

  it('retries each of them once, to the end of the list, and says how far it is and what was answered', async () => {
    pages = { first: { deliveries: some(500), next: 'c-1' }, 'c-1': { deliveries: some(2), next: null } };
    const { status, out, err } = await bringForward();
    expect([status, err]).toEqual([0, '']);
    expect(retried).toEqual([...pages['first']!.deliveries, ...pages['c-1']!.deliveries]);
    expect(out.replaceAll(/^ +/gm, '').split('\n')).toEqual([
      '500, back to 2026-11-22T16:07:10.000Z:',
      '499 202',
      '1 409',
      '2, back to 2026-11-22T16:07:10.000Z:',
      '2 202',
      '',
    ]);
    for (const list of lists) expect(list).toMatch(/state=waiting/);
    for (const list of lists) expect(list).toMatch(/minAttempts=1/);
  });

  it('does nothing where nothing waits', async () => {
    pages = { first: { deliveries: [], next: null } };
    expect(await bringForward()).toEqual({ status: 0, out: '', err: '' });
    expect(retried).toEqual([]);
  });

  it('ends, with the error and its status, where the list cannot be read on', async () => {
    pages = { first: { deliveries: some(500), next: 'away' } };
    const { status, err } = await bringForward();
    expect(status).toBe(3);
    expect(err).toContain('Postgres is away.');
    expect(retried).toHaveLength(500);
  });
});
