import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { CommandLine } from '../support/fake-terminal.js';

const id = '01a202e8-19f1-77e4-97e5-ca38e5405d46';
const alert = {
  id: '2',
  rule: 'role-missing',
  subject: 'role/worker',
  since: '2026-11-22T10:57:47.140Z',
  openedAt: '2026-11-22T10:58:53.067Z',
  resolvedAt: null as string | null,
  title: 'A role is missing',
  what: 'No process with the role worker is alive.',
  toDo: 'Start one, and read in its log why the last one ended.',
  runbook: 'docs/operations.md#alert-role-missing',
  details: { role: 'worker' },
};

// States that a test would have to wait for, as the admin API tells of them. Everything else: command-line.spec.ts.
describe('the command line shows', () => {
  let server: Server;
  let heraut: CommandLine;
  let answers: Record<string, { status?: number; body: unknown }>;
  /** The last body that was sent to each path. */
  const asked: Record<string, string> = {};

  beforeAll(async () => {
    const respond = async (request: IncomingMessage, response: ServerResponse) => {
      const path = request.url!.split('?')[0]!;
      asked[path] = await text(request);
      const { status = 200, body } = answers[path] ?? answers.other!;
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    server = createServer((request, response) => void respond(request, response)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    heraut = new CommandLine({ HERAUT_URL: `http://127.0.0.1:${port}`, HERAUT_TOKEN: 'token', DATA_DIR: '/nowhere' });
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  it('alerts: of those that are open what to do, and where that is explained', async () => {
    const over = { ...alert, id: '1', resolvedAt: '2026-11-22T11:00:00.000Z' };
    answers = { '/admin/v1/alerts': { body: { alerts: [alert, over], nextCursor: null } } };
    const { exit, out } = await heraut.run('alerts list');
    expect(exit).toBe(0);
    expect(out.split('\n\n')).toEqual([
      [
        'A role is missing: role/worker, open since 2026-11-22 10:57:47Z',
        '  No process with the role worker is alive.',
        '  Start one, and read in its log why the last one ended.',
        '  docs/operations.md#alert-role-missing',
      ].join('\n'),
      [
        'A role is missing: role/worker, from 2026-11-22 10:57:47Z to 2026-11-22 11:00:00Z',
        '  No process with the role worker is alive.\n',
      ].join('\n'),
    ]);
    answers = { '/admin/v1/alerts': { body: { alerts: [], nextCursor: null } } };
    expect((await heraut.run('alerts list --state open')).out).toBe('No alerts.\n');
  });

  it('the rules of alerts', async () => {
    const rules = {
      deadLetters: { isEnabled: true, count: 1 },
      roleMissing: { isEnabled: true, roles: ['api', 'worker'], afterSeconds: 60 },
      ledgerDisk: { isEnabled: false, maxBytes: 1_000_000 },
      subscriptionDisabled: { isEnabled: true },
      repeatAfterHours: null,
      groupSeconds: 300,
      tellsOwners: true,
    };
    answers = { '/admin/v1/alert-rules': { body: rules } };
    expect((await heraut.run('alerts rules')).out.trimEnd().split('\n')).toEqual([
      'deadLetters           count 1',
      'roleMissing           roles api,worker, afterSeconds 60',
      'ledgerDisk            off',
      'subscriptionDisabled  on',
      'repeatAfterHours      never',
      'groupSeconds          300',
      'tellsOwners           true',
    ]);
    expect(await heraut.json('alerts rules')).toEqual(rules);
  });

  it('what came of a test of alerts, and fails unless somebody was told', async () => {
    const result = { channel: 'mail', recipient: 'operators@example.org', isSent: true, error: null };
    const at = (results: unknown[]) => (answers = { '/admin/v1/alerts/test': { body: { results } } });
    at([result]);
    expect(await heraut.run('alerts test')).toMatchObject({
      exit: 0,
      out: expect.stringMatching(/^mail +operators@example.org +sent$/m),
    });
    at([result, { ...result, isSent: false, error: 'ECONNREFUSED' }]);
    expect(await heraut.run('alerts test')).toMatchObject({ exit: 1, out: expect.stringMatching(/ECONNREFUSED$/m) });
    at([]);
    expect(await heraut.run('alerts test')).toMatchObject({ exit: 1, out: expect.stringContaining('Nobody is told') });
  });

  it('what a delivery does at this moment only where that is a call', async () => {
    const at = (live: unknown) =>
      (answers = {
        [`/admin/v1/deliveries/${id}/${id}`]: {
          body: { notificationId: id, subscriptionId: id, state: 'held', heldFor: 'paused', attempts: [], live },
        },
      });
    const show = async () => (await heraut.run(`deliveries show ${id} ${id}`)).out;
    at({ status: 'waiting', startedAt: null });
    expect(await show()).not.toContain('At this moment');
    at({ status: 'sending', startedAt: '2026-11-22T10:57:47.140Z' });
    expect(await show()).toMatch(/^At this moment: sending since 2026-11-22 10:57:47Z$/m);
  });

  it('the link to the console, alone where it is to be opened by another program', async () => {
    const url = 'http://127.0.0.1:8000/console/enter?ticket=abc';
    const expiresAt = new Date(Date.now() + 10.5 * 60_000).toISOString();
    answers = { '/admin/v1/sign-in-tickets': { status: 201, body: { url, expiresAt } } };
    expect(await heraut.run('console')).toEqual({
      exit: 0,
      out: `${url}\n`,
      notes: 'It works once, on this machine, for 10 minutes.\n',
    });
    expect(await heraut.json('console')).toEqual({ url, expiresAt });
  });

  it('that not all was counted, and begins it also where none was found until then', async () => {
    const meant = { count: 0, isComplete: false, notifications: 0, bySubscription: [], needsConfirm: true };
    const replay = { id, kind: 'close', state: 'done', stoppedBecause: null, skipped: {}, count: 0, found: 2, done: 2 };
    const times = { searchedTo: '2026-11-22T10:57:47.140Z', createdAt: '2026-11-22T10:57:47.140Z' };
    answers = {
      '/admin/v1/replays/dry-run': { body: { ...meant, searchedTo: times.searchedTo } },
      '/admin/v1/deliveries/close': { status: 201, body: { ...replay, ...times, isCountComplete: false } },
    };
    const { exit, out, notes } = await heraut.run(
      `deliveries close-all --subscription ${id} --yes --note sent-by-hand`,
    );
    expect([exit, out]).toEqual([0, expect.stringMatching(/^done +2 of 0 or more$/m)]);
    expect(notes).toMatch(
      /^0 or more deliveries of 0 notifications are meant\. Looked only at what was accepted before /,
    );
    expect(JSON.parse(asked['/admin/v1/deliveries/close']!)).toMatchObject({ confirm: 0 });
  });

  it('where to look when Heraut itself has trouble', async () => {
    const problem = { code: 'service_unavailable', title: 'Unavailable', detail: 'The database is out of reach.' };
    const parts = { postgres: { status: 'down', error: 'no answer within 2 s' } };
    answers = {
      '/health/ready': { status: 503, body: { status: 'unavailable', parts, down: ['postgres'] } },
      other: { status: 503, body: { status: 503, ...problem } },
    };
    expect(await heraut.run('channels list')).toMatchObject({
      exit: 3,
      notes: expect.stringMatching(/The database is out of reach\. \(503 service_unavailable\)\n`heraut doctor`/),
    });
    const { findings } = JSON.parse((await heraut.run('doctor --json')).out) as {
      findings: { name: string; advice?: string }[];
    };
    const adviceOn = (wanted: string) => findings.find(({ name }) => name === wanted)?.advice;
    expect(adviceOn('health')).toBe('postgres: no answer within 2 s');
    expect(adviceOn('admin-api')).toContain('what is down');
  });

  it.each([{ status: 'UP' }, { status: 'ready', parts: {} }, { status: 'ready', down: [] }, null])(
    'all else that doctor finds where another service answers: %j',
    async (body) => {
      answers = { '/health/ready': { body } };
      const { exit, out } = await heraut.run('doctor --json');
      expect(exit).toBe(1);
      const { findings } = JSON.parse(out) as { findings: { name: string; verdict: string; advice?: string }[] };
      expect(findings.map(({ name }) => name)).toContain('settings');
      expect(findings.find(({ name }) => name === 'health')).toMatchObject({
        verdict: 'failed',
        advice: expect.stringContaining('there is no admin API of Heraut'),
      });
    },
  );

  it('by which name to ask, where doctor asks by another one than those of ALLOWED_HOSTS', async () => {
    const problem = { code: 'host-not-allowed', title: 'Another host.', detail: 'It is not served under this name.' };
    answers = {
      '/health/ready': { body: { status: 'ready', parts: {}, down: [] } },
      other: { status: 421, body: { status: 421, ...problem } },
    };
    const { findings } = JSON.parse((await heraut.run('doctor --json')).out) as {
      findings: { name: string; advice?: string }[];
    };
    expect(findings.find(({ name }) => name === 'admin-api')?.advice).toMatch(/ALLOWED_HOSTS: set HERAUT_URL to one/);
  });

  it('no password of a URL, neither where one is refused nor in what doctor finds', async () => {
    const other = new CommandLine({ HERAUT_URL: 'https://ops:s3cret@heraut.example.org', DATA_DIR: '/nowhere' });
    const { exit, out, notes } = await other.run('alerts list');
    expect({ exit, out }).toEqual({ exit: 2, out: '' });
    const examined = await other.run('doctor');
    expect(examined.out).toMatch(/FAILED +health +Heraut cannot be asked\n +→ The URL has an @ in it/);
    expect(`${notes}${examined.out}${examined.notes}`).not.toContain('s3cret');
  });

  it('that doctor has looked at other servers than those of the Heraut that it asks', async () => {
    const up = { status: 'up' };
    const withParts = (parts: object) =>
      (answers = { '/health/ready': { body: { status: 'ready', parts, down: [] } }, other: { body: {} } });
    withParts({ postgres: up, rabbitmq: up, redis: up });
    expect(await heraut.run('doctor')).toMatchObject({
      exit: 1,
      out: expect.stringMatching(
        /FAILED +same-servers .*: AMQP_URL, REDIS_URL not set\n +→ Run this with the settings/,
      ),
    });
    withParts({ postgres: up });
    expect((await heraut.run('doctor')).out).not.toContain('same-servers');
  });
});
