import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { ChannelChanges } from '../../src/channels/channel-changes.js';
import { ConfigurationAtStart } from '../../src/configuration-file/configuration-at-start.service.js';
import { ConfigurationService } from '../../src/configuration-file/configuration.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { RetryPolicyChanges } from '../../src/retry-policy/retry-policy-changes.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import { AdminApi } from '../support/admin-api.js';
import { makeCertificate } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { CommandLine } from '../support/fake-terminal.js';
import { secretWatch } from '../support/secret-watch.js';
import { signToken } from '../support/tokens.js';

/** The lines about the configuration: what else the process says meanwhile, of its database for one, is left out. */
const loggedOf = ({ mock }: { mock: { calls: unknown[][] } }): unknown[] =>
  mock.calls.map(([line]) => line).filter((line) => JSON.stringify(line)?.includes('"event":"configuration.'));

const inProject = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Of the example in docs, and of the file of Open Notificaties. */
const variables: Record<string, string> = {
  ZAAKREGISTRATIE_SECRET: `zaakregistratie-${randomUUID()}`,
  ARCHIEF_AUTH: `Token ${randomUUID()}`,
  ARCHIEF_API_KEY: `api-key-${randomUUID()}`,
  ARCHIEF_SIGNING_SECRET: `whsec_${randomBytes(32).toString('base64')}`,
  DWH_CLIENT_SECRET: `dwh-client-${randomUUID()}`,
  OPEN_ZAAK_SECRET: `open-zaak-${randomUUID()}`,
  OBJECTEN_SECRET: '',
  OBJECTEN_AUTH: `Token ${randomUUID()}`,
  DWH_SECRET: `dwh-${randomUUID()}`,
  PORTAAL_SECRET: `portaal-${randomUUID()}`,
};
const fileSecret = `archief-${randomUUID()}`;
secretWatch.know(fileSecret, 'a-secret-of-objecten', ...Object.values(variables));

interface Change {
  section: string;
  action: string;
  key: string;
  fields: { name: string; before?: unknown; after?: unknown; secret?: string }[];
  notes: string[];
}

describe('a configuration file', () => {
  let admin: AdminApi;
  let directory: string;
  let example: string;

  beforeAll(async () => {
    Object.assign(process.env, variables);
    directory = mkdtempSync(join(tmpdir(), 'heraut-configuration-'));
    example = join(directory, 'heraut.yaml');
    cpSync(inProject('docs/heraut.example.yaml'), example);
    mkdirSync(join(directory, 'secrets'));
    writeFileSync(join(directory, 'secrets/archief'), `${fileSecret}\n`);
    admin = await AdminApi.start({ ROLES: 'api', CONFIG_FILE: example });
  });
  afterAll(async () => {
    for (const name of Object.keys(variables)) delete process.env[name];
    await admin.close();
    rmSync(directory, { recursive: true });
  });

  /** The command line in this process, against this server. */
  const commandLine = () => new CommandLine({ HERAUT_URL: admin.api.origin, HERAUT_TOKEN: admin.api.superuserToken });
  const heraut = (...words: string[]) => commandLine().run(words.join(' '));

  /** A file with these lines. */
  function file(...lines: string[]): string {
    const path = join(directory, `${randomUUID()}.yaml`);
    writeFileSync(path, lines.join('\n'));
    return path;
  }

  const jsonFile = (configuration: unknown) => file(JSON.stringify(configuration));

  const plan = async (path: string, ...words: string[]) =>
    JSON.parse((await heraut('--json', 'plan', '-f', path, ...words)).out) as {
      changes: Change[];
      unnamed: Record<string, { count: number }>;
      notes: string[];
    };

  async function apply(path: string, ...words: string[]): Promise<string> {
    const { exit, out, notes } = await heraut('apply', '-f', path, ...words);
    expect([exit, notes]).toEqual([0, expect.not.stringContaining('heraut:')]);
    return out;
  }

  it('is read from standard input, as into a container that does not have it', async () => {
    const environment = {
      PATH: process.env.PATH,
      HERAUT_URL: admin.api.origin,
      HERAUT_TOKEN: admin.api.superuserToken,
    };
    const program = inProject('dist/heraut.js');
    const child = execFile(process.execPath, [program, 'plan', '--file', '-'], { env: environment });
    const name = `channel-${randomUUID()}`;
    // More than a pipe holds: it is written when the program has begun to read, and the rest comes later.
    const write = promisify((part: string, done: (error?: Error | null) => void) => child.stdin!.write(part, done));
    await write(`# ${'x'.repeat(300_000)}\n`);
    child.stdin!.end(`channels:\n  - name: ${name}\n`);
    const [output, errors] = await Promise.all([text(child.stdout!), text(child.stderr!)]);
    expect(errors).toBe('');
    expect(output).toContain(name);
  });

  const audited = async (subject: string): Promise<{ action: string; by: string; client: string | null }[]> => {
    const { json } = await admin.get(`/admin/v1/audit?subject=${encodeURIComponent(subject)}`);
    return (json as unknown as { entries: { action: string; by: string; client: string | null }[] }).entries.reverse();
  };

  const subscribed = () => admin.api.app.get(SubscriptionsService);
  const known = (id: string) => admin.api.app.get(SubscriptionDirectory).find(id);

  /** One more subscription by a file of its own, with a channel of its own. */
  async function subscription(
    more: object = {},
  ): Promise<{ id: string; channel: string; entry: Record<string, unknown> }> {
    const [id, channel] = [randomUUID() as string, `channel-${randomUUID()}`];
    const entry = {
      id,
      callbackUrl: 'https://receiver.example.org/hook',
      channels: [{ channel }],
      authorization: { kind: 'verbatim', auth: `Bearer ${randomUUID()}` },
      ...more,
    };
    secretWatch.knowOf(entry);
    await apply(jsonFile({ channels: [{ name: channel }], subscriptions: [entry] }));
    return { id, channel, entry };
  }

  it('of CONFIG_FILE is applied at the start, before anything else, and noted as done by Heraut itself', async () => {
    const archief = await subscribed().get('6b1a1f4e-4f2c-4d9e-9c56-0d0f6a3b7f10');
    expect(archief).toMatchObject({
      ownerClientId: 'archief',
      auth: variables.ARCHIEF_AUTH,
      credentials: { kind: 'verbatim', headers: { 'x-api-key': variables.ARCHIEF_API_KEY } },
      channels: [
        {
          channel: 'zaken',
          filters: { bronorganisatie: '002220647', zaaktype: 'https://catalogi.example.org/zaaktypen/1' },
        },
        { channel: 'documenten', filters: {} },
      ],
      ratePerSecond: 20,
      ordering: 'per-object',
      pausedAt: null,
      signingKeys: [{ scheme: 'v1', endsAt: null }],
    });
    const dwh = await subscribed().get('0f4d8f3a-6c6e-4a51-8d9b-3f7f0f7e2b21');
    expect(dwh).toMatchObject({
      ownerClientId: 'superuser',
      credentials: { kind: 'oauth2', clientSecret: variables.DWH_CLIENT_SECRET, scope: 'hooks' },
      deliveryGuarantee: 'at-most-once',
      maxConcurrency: 4,
      timeoutSeconds: 20,
      alertEmail: 'dwh@example.org',
      pausedAt: expect.any(Date),
    });
    expect((await admin.get('/admin/v1/retry-policy')).json).toMatchObject({ maxRetries: 7, jitter: 0.1 });
    expect((await admin.get('/admin/v1/alert-rules')).json).toMatchObject({
      deadLetters: { isEnabled: true, count: 5 },
      subscriptionDisabled: { isEnabled: false },
      repeatAfterHours: 48,
    });
    // The other tests change them as well, later.
    expect((await audited('alert-rules'))[0]).toMatchObject({ action: 'alert-rules.changed', by: 'system' });
    const entries = await audited(`subscription/${dwh.id}`);
    expect(entries.map(({ action, by }) => [action, by])).toEqual([
      ['subscription.created', 'system'],
      ['subscription.paused', 'system'],
    ]);
    const { signingKeys } = archief;
    expect(signingKeys[0]!.object.export().toString('base64')).toBe(variables.ARCHIEF_SIGNING_SECRET!.slice(6));
  });

  it('changes nothing the second time', async () => {
    const { out } = await heraut('plan', '-f', example, '--check');
    expect(out).toMatch(/^Nothing to change; 8 as they should be\.\n/);
    const before = await audited('subscription/6b1a1f4e-4f2c-4d9e-9c56-0d0f6a3b7f10');
    expect(await apply(example)).toBe(out);
    expect(await audited('subscription/6b1a1f4e-4f2c-4d9e-9c56-0d0f6a3b7f10')).toEqual(before);
  });

  it('can be exported, without a secret, and changes nothing when it is applied as it is', async () => {
    await subscription({ headers: { 'x-one': 'of-header-one', 'x-two': 'of-header-two' } });
    await subscription({ authorization: { kind: 'zgw', clientId: 'heraut', secret: `zgw-${randomUUID()}` } });
    // The command line shows some characters as escapes.
    const marked = { clientId: randomUUID(), secret: `marked-${randomUUID()}`, label: 'a tab\t, a mark \u200e' };
    secretWatch.knowOf(marked);
    await apply(jsonFile({ applications: [{ ...marked, scopes: ['notificaties.consumeren'] }] }));
    const { out } = await heraut('export');
    const exported = parse(out) as {
      subscriptions: Record<string, unknown>[];
      applications: object[];
      alertRules: object;
    };
    expect(exported.subscriptions).toContainEqual(
      expect.objectContaining({
        id: '6b1a1f4e-4f2c-4d9e-9c56-0d0f6a3b7f10',
        authorization: {
          kind: 'verbatim',
          auth: {
            value_from: {
              env: 'HERAUT_SUBSCRIPTION_6B1A1F4E_4F2C_4D9E_9C56_0D0F6A3B7F10_AUTH',
              required: false,
            },
          },
        },
        retryPolicy: { maxRetries: 12 },
      }),
    );
    expect(exported.applications).toContainEqual({
      clientId: 'archief',
      label: 'Archief',
      scopes: ['notificaties.consumeren'],
      alertEmail: 'beheer@archief.example.org',
      secret: { value_from: { env: 'HERAUT_APPLICATION_ARCHIEF_SECRET', required: false } },
    });
    expect(exported.alertRules).toEqual((await admin.get('/admin/v1/alert-rules')).json);
    expect((await plan(file(out), '--prune')).changes).toEqual([]);
  });

  it('is exported as JSON too, which changes nothing without its references, and with null for those of headers', async () => {
    await subscription({ headers: { 'x-one': 'of-header-one', 'x-two': 'of-header-two' } });
    await subscription({ authorization: { kind: 'zgw', clientId: 'heraut', secret: `zgw-${randomUUID()}` } });
    const { text: exported } = await admin.get('/admin/v1/configuration');
    const isReference = (value: unknown) => typeof value === 'object' && value !== null && 'value_from' in value;
    const as = (text: string) => JSON.parse(text) as object;
    const withoutReferences = as(
      JSON.stringify(as(exported), (name, value: unknown) => {
        if (isReference(value)) return undefined;
        if (name !== 'headers' || typeof value !== 'object' || value === null) return value;
        return Object.fromEntries(Object.keys(value).map((header) => [header, null]));
      }),
    );
    const { status, json } = await admin.post('/admin/v1/configuration/plan', withoutReferences);
    expect([status, json.invalidParams, json.changes]).toEqual([200, undefined, []]);
  });

  it('is exported for another installation too, where the owner of a subscription was removed', async () => {
    const clientId = randomUUID();
    const secret = `removed-${randomUUID()}`;
    secretWatch.know(secret);
    await apply(jsonFile({ applications: [{ clientId, secret }] }));
    const { id } = await subscription({ ownerClientId: clientId });
    const all = (await admin.get('/admin/v1/applications')).json.applications as { id: string; clientId: string }[];
    const path = `/admin/v1/applications/${all.find((one) => one.clientId === clientId)!.id}`;
    expect((await admin.delete(path)).status).toBe(204);
    const { out } = await heraut('export');
    expect((await plan(file(out), '--prune')).changes).toEqual([]);
    const { subscriptions } = parse(out) as { subscriptions: { id: string }[] };
    // Elsewhere it is new, and its secret is set there.
    const authorization = { kind: 'verbatim', auth: '' };
    const elsewhere = { ...subscriptions.find((one) => one.id === id)!, id: randomUUID(), authorization };
    const [change] = (await plan(jsonFile({ subscriptions: [elsewhere] }))).changes;
    expect(change!.fields).toContainEqual({ name: 'ownerClientId', before: null, after: 'superuser' });
  });

  it('shows what it would change, field by field, and of secrets only that they change', async () => {
    const { id, entry } = await subscription({ headers: { 'x-old': 'value-of-old' } });
    const changed = {
      ...entry,
      callbackUrl: 'https://receiver.example.org/other',
      authorization: { kind: 'verbatim', auth: `Bearer ${randomUUID()}` },
      headers: { 'x-new': 'value-of-new' },
      maxConcurrency: 3,
      isPaused: true,
      retryPolicy: { maxRetries: 1 },
    };
    secretWatch.knowOf(changed);
    const path = jsonFile({ subscriptions: [changed] });
    const { out, exit } = await heraut('plan', '-f', path, '--check');
    expect(exit).toBe(1);
    expect(out.split('\n\n')[0]!.split('\n')).toEqual([
      'Subscriptions',
      `  ~ ${id}  https://receiver.example.org/hook`,
      '      callbackUrl: "https://receiver.example.org/hook" → "https://receiver.example.org/other"',
      '      maxConcurrency: null → 3',
      '      isPaused: false → true',
      '      retryPolicy: null → {"maxRetries":1}',
      '      authorization.auth: (secret changed)',
      '      headers.x-old: (secret removed)',
      '      headers.x-new: (secret set)',
    ]);
    expect(out).toContain('0 to create, 1 to change, 0 to remove; 0 as they should be.');
    await apply(path);
    expect((await plan(path)).changes).toEqual([]);
    const entries = await audited(`subscription/${id}`);
    expect(entries.map(({ action, client }) => [action, client])).toEqual([
      ['subscription.created', 'superuser'],
      ['subscription.changed', 'superuser'],
      ['subscription.changed', 'superuser'],
      ['subscription.credentials-changed', 'superuser'],
      ['subscription.paused', 'superuser'],
      ['subscription.retry-policy-changed', 'superuser'],
    ]);
  });

  it('leaves as it is what it does not name: fields, and what was set by hand', async () => {
    const { id, channel } = await subscription({ ratePerSecond: 5 });
    await admin.post(`/admin/v1/subscriptions/${id}/pause`);
    const { changes, unnamed } = await plan(jsonFile({ subscriptions: [{ id, channels: [{ channel }] }] }));
    expect(changes).toEqual([]);
    expect(unnamed.subscriptions!.count).toBeGreaterThan(1);
    expect(unnamed.applications!.count).toBe(0);
    await apply(jsonFile({ subscriptions: [{ id, ratePerSecond: null, isPaused: false }] }));
    expect(await subscribed().get(id)).toMatchObject({ ratePerSecond: null, pausedAt: null });
  });

  it('changes the fields of alert rules that it names, and where an application is told; the others stay', async () => {
    const clientId = `told-${randomUUID()}`;
    const secret = `secret-${randomUUID()}`;
    secretWatch.know(secret);
    const owner = (more: object) => jsonFile({ applications: [{ clientId, ...more }] });
    await apply(owner({ secret, alertEmail: 'one@example.org' }));
    expect((await plan(owner({ label: clientId }))).changes).toEqual([]);
    const address = { name: 'alertEmail', before: 'one@example.org', after: null };
    expect((await plan(owner({ alertEmail: null }))).changes).toMatchObject([{ key: clientId, fields: [address] }]);
    await apply(owner({ alertEmail: null }));
    const { json: all } = await admin.get('/admin/v1/applications');
    expect(all.applications).toContainEqual(expect.objectContaining({ clientId, alertEmail: null }));

    const before = (await admin.get('/admin/v1/alert-rules')).json as unknown as { oldestDue: object };
    const noted = (await audited('alert-rules')).length;
    const path = file('alertRules:', '  oldestDue: { afterSeconds: 77 }', '  repeatAfterHours: null');
    const { out } = await heraut('plan', '-f', path);
    expect(out.split('\n\n')[0]!.split('\n')).toEqual([
      'Alert rules',
      '  ~ general',
      '      oldestDue.afterSeconds: 300 → 77',
      '      repeatAfterHours: 48 → null',
    ]);
    await apply(path);
    await apply(path);
    expect((await admin.get('/admin/v1/alert-rules')).json).toEqual({
      ...before,
      oldestDue: { ...before.oldestDue, afterSeconds: 77 },
      repeatAfterHours: null,
    });
    expect(await audited('alert-rules')).toHaveLength(noted + 1);
    await apply(jsonFile({ alertRules: before })); // those that the other tests know
  });

  it('tells all that is wrong at once, by line and column, and changes nothing', async () => {
    const { channel } = await subscription();
    const id = randomUUID();
    const path = file(
      'applications:',
      '  - { clientId: good, secret: { value_from: { env: ZAAKREGISTRATIE_SECRET } } }',
      '  - { clientId: short, secret: short }',
      '  - { clientId: superuser, secret: { value_from: { env: ZAAKREGISTRATIE_SECRET } } }',
      '  - { clientId: unset, secret: { value_from: { env: NOT_SET } } }',
      'channels:',
      '  - name: fine',
      '    retries: 3',
      '  - { name: misspelt, filters: [one], deduplication: { fields: [kenmerken.two] } }',
      'subscriptions:',
      `  - id: ${id}`,
      '    callbackUrl: ftp://receiver.example.org',
      `  - id: ${randomUUID()}`,
      '    ownerClientId: nobody',
      '    callbackUrl: http://169.254.169.254/latest',
      `    channels: [{ channel: ${channel} }, { channel: zaken, filters: { unknown: x, zaaktype: y } }]`,
      '    authorization: { kind: zgw, clientId: heraut }',
      '    headers: { host: x }',
      '    signingKeys: [{ secret: whsec_short }]',
      '    timeoutSeconds: 250',
      'retryPolicy: { maxRetries: 1000 }',
      'alertRules:',
      '  deadLetters: { count: 0, after: 5 }',
      '  oldestdue: {}',
    );
    const { exit, notes } = await heraut('apply', '-f', path);
    expect(exit).toBe(1);
    const lines = notes.split('\n').filter((line) => line.startsWith(path));
    expect(lines.map((line) => line.slice(path.length + 1).replace(/^(\S+) ([^:]+): .*/, '$1 $2')).toSorted()).toEqual(
      [
        '3:32 applications.1.secret',
        '4:17 applications.2.clientId',
        '5:32 applications.3.secret',
        '8:5 channels.0.retries',
        '9:65 channels.1.deduplication.fields.0',
        '12:18 subscriptions.0.callbackUrl',
        '14:20 subscriptions.1.ownerClientId',
        '15:18 subscriptions.1.callbackUrl',
        '17:20 subscriptions.1.authorization.secret',
        '18:22 subscriptions.1.headers.host',
        '19:29 subscriptions.1.signingKeys.0.secret',
        '20:21 subscriptions.1.timeoutSeconds',
        '21:28 retryPolicy.maxRetries',
        '23:25 alertRules.deadLetters.count',
        '23:28 alertRules.deadLetters.after',
        '24:3 alertRules.oldestdue',
      ].toSorted(),
    );
    expect(notes).toContain('has errors; nothing was changed.');
    const { json } = await admin.get('/admin/v1/applications');
    expect(json.applications).not.toContainEqual(expect.objectContaining({ clientId: 'good' }));
  });

  it('does not start a process with a file that is wrong, and names each line', async () => {
    const path = file('channels:', '  - { name: one, filter: [] }', '  - { name: "" }', '  - {}');
    const start = new ConfigurationAtStart(
      { settings: { CONFIG_FILE: path } } as ConstructorParameters<typeof ConfigurationAtStart>[0],
      admin.api.app.get(ConfigurationService),
    );
    await expect(start.onModuleInit()).rejects.toThrow(
      [
        `  ${path}:2:18 channels.0.filter: There is no such field here.`,
        `  ${path}:3:13 channels.1.name: Too small: expected string to have >=1 characters`,
        `  ${path}:4:5 channels.2.name: Is missing.`,
      ].join('\n'),
    );
    expect((await admin.get('/admin/v1/channels')).json.channels).not.toContainEqual(
      expect.objectContaining({ name: 'one' }),
    );
  });

  it('is applied once by processes that start together', async () => {
    const name = `channel-${randomUUID()}`;
    const service = admin.api.app.get(ConfigurationService);
    const configuration = { channels: [{ name, filters: ['kind'] }] };
    const plans = await Promise.all([1, 2, 3].map(() => service.apply(configuration, false)));
    expect(plans.map(({ changes }) => changes.length).toSorted()).toEqual([0, 0, 1]);
    expect((await plan(jsonFile(configuration))).changes).toEqual([]);
  });

  const startWith = (path: string) =>
    new ConfigurationAtStart(
      { settings: { CONFIG_FILE: path } } as ConstructorParameters<typeof ConfigurationAtStart>[0],
      admin.api.app.get(ConfigurationService),
    );

  it('is applied at a start that waits for longer than a lock may take, until another process has made its changes', async () => {
    const [ours, theirs] = [`channel-${randomUUID()}`, `channel-${randomUUID()}`];
    const configuration = { channels: [{ name: ours }, { name: theirs }] };
    const warn = vi.spyOn(Logger.prototype, 'warn');
    const hasWaited = () => warn.mock.calls.some(([line]) => JSON.stringify(line).includes('"configuration.waits"'));
    const start = startWith(jsonFile(configuration));
    let starting: Promise<void> | undefined;
    try {
      await admin.api.app.get(Catalogue).change(async (manager, version) => {
        await new ChannelChanges(manager, version).create({ name: theirs, documentationLink: '', filters: [] });
        starting = start.onModuleInit();
        // Postgres ends a transaction that is idle for as long.
        await eventually(async () => (await manager.query('SELECT 1')) && hasWaited(), 'a start that waits');
      });
    } finally {
      warn.mockRestore();
    }
    await starting;
    expect((await plan(jsonFile(configuration))).changes).toEqual([]);
  });

  it('takes a certificate that is valid by the clock of Postgres, wherever the clock of the machine is', async () => {
    const { certificate, key } = makeCertificate('heraut');
    const { entry } = await subscription();
    const configuration = { subscriptions: [{ ...entry, tls: { certificate, key } }] };
    const machine = vi.spyOn(Date, 'now').mockReturnValue(Date.parse('2999-01-01'));
    try {
      const { changes } = await admin.api.app.get(ConfigurationService).plan(configuration, false);
      expect(changes).toMatchObject([{ action: 'change', key: entry.id }]);
    } finally {
      machine.mockRestore();
    }
  });

  it('removes with --prune what it could name and does not, and only of the kinds it has', async () => {
    const kept = await subscription();
    const gone = await subscription();
    const before = await heraut('export');
    const configuration = parse(before.out) as { subscriptions: { id: string }[]; applications: object[] };
    const path = jsonFile({ subscriptions: configuration.subscriptions.filter(({ id }) => id !== gone.id) });
    expect((await plan(path)).changes).toEqual([]);
    const pruned = await plan(path, '--prune');
    expect(pruned.changes).toMatchObject([{ section: 'subscriptions', action: 'remove', key: gone.id }]);
    const unasked = ['apply', '-f', path, '--prune'];
    expect(await heraut(...unasked)).toMatchObject({ exit: 2, notes: expect.stringContaining(`  - ${gone.id}`) });
    expect(await commandLine().run(unasked.join(' '), { isTerminal: true, answer: 'no' })).toMatchObject({
      exit: 1,
      out: '',
      notes: expect.stringContaining('remove 1 that'),
    });
    expect(known(gone.id)).toBeDefined();
    expect(await apply(path, '--prune', '--yes')).toContain(`  - ${gone.id}  https://receiver.example.org/hook`);
    expect(known(gone.id)).toBeUndefined();
    expect(known(kept.id)).toBeDefined();

    // The commit that took it out of the file is reverted.
    await apply(jsonFile({ subscriptions: [gone.entry] }));
    expect(await subscribed().get(gone.id)).toMatchObject({ callbackUrl: gone.entry.callbackUrl });
    expect((await audited(`subscription/${gone.id}`)).map(({ action }) => action)).toEqual([
      'subscription.created',
      'subscription.deleted',
      'subscription.created',
    ]);
  });

  it('tells what is left out of the file before it asks whether to remove anything', async () => {
    await subscription();
    const path = file(
      'notifications_abonnementen_config_enable: true',
      'notifications_abonnementen_config: { items: [] }',
      'notifications_config_enable: true',
      'notifications_config: { notification_delivery_retry_backoff: 0 }',
    );
    const words = ['apply', '-f', path, '--prune'];
    const { exit, notes } = await commandLine().run(words.join(' '), { isTerminal: true, answer: 'no' });
    expect(exit).toBe(1);
    expect(notes).toMatch(/is left out: 0 is ignored[^]* to remove[^]*Apply it, and remove/);
  });

  it('over the API prunes only as many as were confirmed', async () => {
    const { id } = await subscription();
    const { subscriptions } = parse((await heraut('export')).out) as { subscriptions: { id: string }[] };
    const others = { subscriptions: subscriptions.filter((each) => each.id !== id).map((each) => ({ id: each.id })) };
    const url = `${admin.api.origin}/admin/v1/configuration/apply?prune=true`;
    for (const wrong of ['', '&confirm=0', '&confirm=2'])
      expect(await admin.api.post(url + wrong, others)).toMatchObject({
        status: 409,
        json: { code: 'removals-not-confirmed', detail: expect.stringContaining('?confirm=1.') },
      });
    expect(known(id)).toBeDefined();
    expect((await admin.api.post(`${url}&confirm=1`, others)).json.changes).toMatchObject([{ action: 'remove' }]);
    expect((await admin.api.post(`${url}&confirm=1`, others)).json.changes).toEqual([]);
  });

  describe('as a text, over the API', () => {
    const path = '/admin/v1/configuration/text';

    interface Planned {
      plan: { changes: Change[] } | null;
      problems: { line: number; column: number; field: string; said: string }[];
      notes: { field: string; line: number }[];
      references: { line: number; field: string; kind: string; name: string; isGiven: boolean }[];
    }
    const planText = async (lines: string[], values?: object, query = '') => {
      const answer = await admin.post(`${path}/plan${query}`, { text: lines.join('\n'), values });
      expect(answer.status).toBe(200);
      return { ...(answer.json as unknown as Planned), etag: answer.headers.get('etag')! };
    };
    const applyText = (
      lines: string[],
      { values, query = '', etag }: { values?: object; query?: string; etag?: string },
    ) =>
      admin.post(
        `${path}/apply${query}`,
        { text: lines.join('\n'), values },
        { headers: etag === undefined ? {} : { 'if-match': etag } },
      );

    it('is exported, and changes nothing as it is, with a reference in the place of each secret', async () => {
      await subscription();
      const { text } = (await admin.get(path)).json as unknown as { text: string };
      expect(text).toBe((await heraut('export')).out);
      const { plan, problems, notes, references } = await planText(text.split('\n'));
      expect([plan?.changes, problems, notes]).toEqual([[], [], []]);
      expect(references.length).toBeGreaterThan(3);
      expect(new Set(references.map(({ kind, isGiven }) => `${kind} ${isGiven}`))).toEqual(new Set(['env false']));
    });

    it('is never given what the server has in its variables and files, nor a default in their place', async () => {
      process.env.OF_THE_SERVER = 'a-secret-of-the-server';
      secretWatch.know('a-secret-of-the-server');
      const { id } = await subscription();
      const lines = [
        'subscriptions:',
        `  - id: ${id}`,
        '    alertEmail: { value_from: { env: OF_THE_SERVER } }',
        '    callbackUrl: { value_from: { file: secrets/archief, default: "https://elsewhere.example.org" } }',
        'applications:',
        `  - clientId: ${randomUUID()}`,
        '    secret: { value_from: { env: OF_THE_SERVER, default: only-for-development } }',
      ];
      const { plan, problems, references } = await planText(lines);
      delete process.env.OF_THE_SERVER;
      expect(plan).toBeNull();
      expect(problems).toEqual([
        {
          line: 7,
          column: 13,
          field: 'applications.0.secret',
          said: 'The variable OF_THE_SERVER has no value here, and there is none that could stay.',
        },
      ]);
      expect(references.map(({ line, field, kind, name, isGiven }) => [line, field, kind, name, isGiven])).toEqual([
        [3, 'subscriptions.0.alertEmail', 'env', 'OF_THE_SERVER', false],
        [4, 'subscriptions.0.callbackUrl', 'file', 'secrets/archief', false],
        [7, 'applications.0.secret', 'env', 'OF_THE_SERVER', false],
      ]);
      const refused = await applyText(lines, {});
      expect([refused.status, refused.json.invalidParams]).toEqual([
        400,
        [{ name: 'applications.0.secret', code: 'invalid', reason: expect.stringMatching(/^Line 7, column 13: /) }],
      ]);
    });

    it('of Open Notificaties leaves the secrets and kanalen that it does not say, and needs the secrets of what is new', async () => {
      const [zgw, key, naam] = [randomUUID() as string, randomUUID() as string, `channel-${randomUUID()}`];
      const identifier = `application-${randomUUID()}`;
      const lines = (...more: string[]) => [
        'vng_api_common_credentials_config_enable: true',
        'vng_api_common_credentials:',
        `  items: [{ identifier: ${identifier}, secret: { value_from: { env: APPLICATION } } }]`,
        'notifications_kanalen_config_enable: true',
        `notifications_kanalen_config: { items: [{ naam: ${naam} }] }`,
        'notifications_abonnementen_config_enable: true',
        'notifications_abonnementen_config:',
        '  items:',
        `    - uuid: ${zgw}`,
        '      callback_url: https://zgw.example.org/hook',
        '      auth_type: zgw',
        '      auth_client_id: heraut',
        '      secret: { value_from: { env: ZGW } }',
        ...more,
        `    - uuid: ${key}`,
        '      callback_url: https://key.example.org/hook',
        '      auth: { value_from: { env: KEY } }',
        ...more,
      ];
      const env = { APPLICATION: `a-${randomUUID()}`, ZGW: `z-${randomUUID()}`, KEY: `Token ${randomUUID()}` };
      secretWatch.knowOf(env);
      const isNew = await planText(lines());
      expect(isNew.plan).toBeNull();
      const fields = isNew.problems.map(({ line, field }) => `${line} ${field.replace('notifications_', '')}`);
      expect(new Set(fields)).toEqual(
        new Set([
          '3 vng_api_common_credentials.items.0.secret',
          '13 abonnementen_config.items.0.secret',
          '16 abonnementen_config.items.1.auth',
        ]),
      );
      const applied = await applyText(lines(`      kanalen: [{ naam: ${naam} }]`), { values: { env } });
      expect(applied.status).toBe(200);
      const again = await planText(lines());
      expect([again.plan?.changes, again.problems]).toEqual([[], []]);
    });

    it('is given what its references lead to with the request', async () => {
      const clientId = randomUUID();
      const [secret, label] = [`secret-${randomUUID()}`, `label-${randomUUID()}`];
      secretWatch.know(secret);
      const lines = [
        'applications:',
        `  - clientId: ${clientId}`,
        '    secret: { value_from: { env: GIVEN } }',
        '    label: { value_from: { file: label.txt } }',
      ];
      const values = { env: { GIVEN: secret, constructor: 'x' }, file: { 'label.txt': `${label}\n` } };
      const { plan, references, etag } = await planText(lines, values);
      expect(references.map(({ isGiven }) => isGiven)).toEqual([true, true]);
      expect(plan!.changes).toMatchObject([{ section: 'applications', action: 'create', key: clientId }]);
      const { status, text } = await applyText(lines, { values, etag });
      expect([status, text.includes(label), text.includes(secret)]).toEqual([200, true, false]);
      expect((await planText(lines, values)).plan!.changes).toEqual([]);
      // Without them, what is there stays.
      expect((await planText(lines)).plan!.changes).toEqual([]);
    });

    it('is told by line all that is wrong, be it YAML or what it says', async () => {
      const said = async (...lines: string[]) =>
        (await planText(lines)).problems.map(({ line, column, field }) => `${line}:${column} ${field}`);
      expect((await said('channels: [', '  - x'))[0]).toMatch(/^\d:\d $/);
      expect(await said('channels:', '  - name: x', '    retries: 3', 'retryPolicy: { jitter: 2 }')).toEqual([
        '3:5 channels.0.retries',
        '4:24 retryPolicy.jitter',
      ]);
      expect(await said('- x')).toEqual(['1:1 ']);
      for (const bomb of ['['.repeat(50_000), '&a [*a]', `${'['.repeat(60)}${']'.repeat(60)}`])
        expect((await said(bomb))[0]).toMatch(/^\d+:\d+ $/);
      expect(await said('['.repeat(50_000))).toHaveLength(50);
      const { json } = await applyText(['channels: 5'], {});
      expect(json.invalidParams).toMatchObject([{ name: 'channels', reason: 'Line 1, column 11: Not a list.' }]);
    });

    it('notes secrets in it, and reads the file of Open Notificaties', async () => {
      secretWatch.know('plain-secret-of-a-text');
      const lines = ['applications:', `  - { clientId: ${randomUUID()}, secret: plain-secret-of-a-text }`];
      const { plan, notes } = await planText(lines);
      expect([plan!.changes.length, notes]).toMatchObject([1, [{ line: 2, field: 'applications.0.secret' }]]);
      // Abonnementen that are new, whichever test has applied that file.
      const open = readFileSync(inProject('test/support/files/open-notificaties.yaml'), 'utf8')
        .replaceAll(/uuid: .*/g, () => `uuid: ${randomUUID()}`)
        .split('\n');
      const { problems, references } = await planText(open);
      const needed = problems.map(({ field }) => field);
      const missing = references.filter(({ field }) => needed.includes(field));
      const env = Object.fromEntries(missing.map(({ name }) => [name, variables[name] || 'a-secret-of-objecten']));
      expect(missing.map(({ field }) => field).toSorted()).toEqual(needed.toSorted());
      expect(needed.length).toBeGreaterThan(0);
      expect((await planText(open, { env })).problems).toEqual([]);
    });

    it('is applied as it was planned, or not at all', async () => {
      const { channel } = await subscription();
      const lines = [`channels: [{ name: ${channel}, maxAgeSeconds: 60, filters: [kind] }]`];
      const { etag } = await planText(lines);
      const other = await applyText([`channels: [{ name: ${channel}, filters: [kind] }]`], {});
      expect(other.status).toBe(200);
      const refused = await applyText(lines, { etag });
      expect([refused.status, refused.json.code]).toEqual([412, 'changed-meanwhile']);
      const again = await planText(lines);
      expect((await applyText(lines, { etag: again.etag })).status).toBe(200);
      expect((await applyText(lines, { etag: again.etag })).json.changes).toEqual([]);
    });

    it('removes what it does not name only with their number', async () => {
      const { id } = await subscription();
      const { text } = (await admin.get(path)).json as unknown as { text: string };
      const { subscriptions } = parse(text) as { subscriptions: { id: string }[] };
      const lines = [JSON.stringify({ subscriptions: subscriptions.filter((each) => each.id !== id) })];
      const { plan, etag } = await planText(lines, undefined, '?prune=true');
      expect(plan!.changes).toMatchObject([{ action: 'remove', key: id }]);
      expect((await applyText(lines, { etag, query: '?prune=true' })).status).toBe(409);
      expect((await applyText(lines, { etag, query: '?prune=true&confirm=1' })).status).toBe(200);
    });
  });

  it('does not prune the application that asks for it', async () => {
    const caller = { clientId: `operator-${randomUUID()}`, secret: `secret-${randomUUID()}` };
    await admin.post('/admin/v1/applications', { ...caller, label: 'Operator', isSuperuser: true });
    const url = `${admin.api.origin}/admin/v1/configuration/apply?prune=true`;
    const { status, json } = await admin.api.post(url, { applications: [] }, { token: signToken(caller) });
    expect([status, json.invalidParams]).toEqual([400, [expect.objectContaining({ name: 'applications' })]]);
  });

  it('is not refused for what was accepted before, and is not to change', async () => {
    const owner = { clientId: `owner-${randomUUID()}`, secret: `secret-${randomUUID()}` };
    secretWatch.know(owner.secret);
    await apply(jsonFile({ applications: [owner] }));
    const { id, entry } = await subscription({ ownerClientId: owner.clientId });
    const { json } = await admin.get('/admin/v1/applications');
    const { id: ownerId } = (json.applications as { id: string; clientId: string }[]).find(
      ({ clientId }) => clientId === owner.clientId,
    )!;
    await admin.delete(`/admin/v1/applications/${ownerId}`);
    expect((await plan(jsonFile({ subscriptions: [entry] }))).changes).toEqual([]);
    const { notes } = await heraut('plan', '-f', jsonFile({ subscriptions: [{ id, ownerClientId: 'another' }] }));
    expect(notes).toContain('subscriptions.0.ownerClientId: There is no application with this client id.');
  });

  /** The client id of a new application. */
  async function application(scopes: readonly string[] = ['notificaties.consumeren']): Promise<string> {
    const [clientId, secret] = [`client-${randomUUID()}`, `secret-${randomUUID()}`];
    secretWatch.know(secret);
    await apply(jsonFile({ applications: [{ clientId, secret, scopes }] }));
    return clientId;
  }

  const theApplication = async (clientId: string) =>
    ((await admin.get('/admin/v1/applications')).json.applications as { id: string; clientId: string }[]).find(
      (one) => one.clientId === clientId,
    );

  it('is refused with --prune where it gives a subscription to an application that it would remove', async () => {
    const owner = await application();
    const { id } = await subscription({ ownerClientId: owner });
    const { applications } = parse((await heraut('export')).out) as { applications: { clientId: string }[] };
    const others = { applications: applications.filter(({ clientId }) => clientId !== owner) };
    const prune = (subscriptions?: object[]) =>
      heraut('--json', 'plan', '-f', jsonFile({ ...others, subscriptions }), '--prune');
    const refused = await prune([{ id, ownerClientId: owner }]);
    expect([refused.exit, refused.notes]).toEqual([
      1,
      expect.stringContaining('subscriptions.0.ownerClientId: Pruning would remove this application'),
    ]);

    const removal = async (subscriptions?: object[]) =>
      (JSON.parse((await prune(subscriptions)).out) as { changes: Change[] }).changes.find(({ key }) => key === owner)!;
    const noted = [expect.stringContaining('Its subscriptions (1) stay and are delivered to')];
    expect(await removal()).toMatchObject({ action: 'remove', notes: noted });
    expect(await removal([{ id }])).toMatchObject({ notes: noted });
    expect(await removal([{ id, ownerClientId: 'superuser' }])).toMatchObject({ notes: [] });
    expect(await removal([])).toMatchObject({ notes: [] });
  });

  it('notes subscriptions of an application that may not subscribe any more, and those that a new one takes over', async () => {
    const owner = await application();
    await subscription({ ownerClientId: owner });
    const withoutScopes = jsonFile({ applications: [{ clientId: owner, scopes: [] }] });
    expect((await plan(withoutScopes)).changes).toMatchObject([
      { notes: [expect.stringContaining('Its subscriptions (1) go on being delivered to')] },
    ]);
    const labelled = jsonFile({ applications: [{ clientId: owner, label: 'Another' }] });
    expect((await plan(labelled)).changes).toMatchObject([{ notes: [] }]);
    await admin.delete(`/admin/v1/applications/${(await theApplication(owner))!.id}`);
    const secret = `secret-${randomUUID()}`;
    expect((await plan(jsonFile({ applications: [{ clientId: owner, secret }] }))).changes).toMatchObject([
      { action: 'create', notes: [expect.stringContaining('It owns the subscriptions (1) of the application')] },
    ]);
  });

  it('takes back the alert address of the owner that a subscription had, and notes that it may know the keys', async () => {
    const [former, next] = [await application(), await application()];
    const secret = `whsec_${randomBytes(32).toString('base64')}`;
    const more = { ownerClientId: former, alertEmail: 'former@example.org', signingKeys: [{ secret }] };
    const { id } = await subscription(more);
    const path = jsonFile({ subscriptions: [{ id, ownerClientId: next }] });
    const { out } = await heraut('plan', '-f', path);
    expect(out.split('\n\n')[0]!.split('\n')).toEqual([
      'Subscriptions',
      `  ~ ${id}  https://receiver.example.org/hook`,
      `      ownerClientId: "${former}" → "${next}"`,
      '      alertEmail: "former@example.org" → null',
      `      Note: ${former}, its owner so far, may know the signing keys that stay: name others, or have ${next} rotate them.`,
    ]);
    await apply(path);
    expect(await subscribed().get(id)).toMatchObject({ ownerClientId: next, alertEmail: null });
    // An address that the new owner leaves then stays.
    await admin.patch(`/admin/v1/subscriptions/${id}`, { alertEmail: 'next@example.org' });
    expect((await plan(path)).changes).toEqual([]);
  });

  it('gives another owner the alert address and keys that it names', async () => {
    const [former, next] = [await application(), await application()];
    const secret = () => `whsec_${randomBytes(32).toString('base64')}`;
    const keys = (...secrets: string[]) => ({ signingKeys: secrets.map((each) => ({ secret: each })) });
    const { id } = await subscription({ ownerClientId: former, alertEmail: 'same@example.org', ...keys(secret()) });
    const wanted = { id, ownerClientId: next, alertEmail: 'same@example.org', ...keys(secret()) };
    secretWatch.knowOf(wanted);
    const [change] = (await plan(jsonFile({ subscriptions: [wanted] }))).changes;
    expect(change!.fields.map(({ name }) => name)).toEqual(['ownerClientId', 'signingKeys']);
    expect(change!.notes).toEqual([]);
    await apply(jsonFile({ subscriptions: [wanted] }));
    expect(await subscribed().get(id)).toMatchObject({ ownerClientId: next, alertEmail: 'same@example.org' });
  });

  it('notes that an owner has not the scope to change or delete its subscription', async () => {
    const publisher = await application(['notificaties.publiceren']);
    const noted = [expect.stringContaining(`${publisher} has not the scope notificaties.consumeren`)];
    const { id, entry } = await subscription();
    for (const wanted of [{ id }, { ...entry, id: randomUUID() }])
      expect(
        (await plan(jsonFile({ subscriptions: [{ ...wanted, ownerClientId: publisher }] }))).changes,
      ).toMatchObject([{ notes: noted }]);
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    try {
      await startWith(jsonFile({ subscriptions: [{ id, ownerClientId: publisher }] })).onModuleInit();
      const note = expect.stringContaining(`subscriptions/${id}: ${publisher} has not the scope`);
      expect(warn.mock.calls).toContainEqual([{ event: 'configuration.note', note }]);
    } finally {
      warn.mockRestore();
    }
  });

  it('logs the notes at a start also behind many changes that have none, and says how many it leaves out', async () => {
    const publisher = await application(['notificaties.publiceren']);
    const channels = Array.from({ length: 51 }, () => ({ name: `channel-${randomUUID()}` }));
    const { entry } = await subscription();
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    try {
      const another = () => ({ ...entry, id: randomUUID(), ownerClientId: publisher });
      const subscriptions = Array.from({ length: 51 }, another);
      await startWith(jsonFile({ channels, subscriptions })).onModuleInit();
      const about = /has not the scope|more of these/; // and not that their secrets are in plain text
      const notes = (loggedOf(warn) as { note: string }[]).map(({ note }) => note).filter((note) => about.test(note));
      expect(notes).toHaveLength(51);
      expect(notes[0]).toContain(`${publisher} has not the scope`);
      expect(notes.at(-1)).toBe('and 1 more of these');
    } finally {
      warn.mockRestore();
    }
  });

  it('replaces signing keys: the old one signs for a day more', async () => {
    const secret = () => `whsec_${randomBytes(32).toString('base64')}`;
    const [one, other] = [secret(), secret()];
    const { id } = await subscription({ signingKeys: [{ secret: one }] });
    await apply(jsonFile({ subscriptions: [{ id, signingKeys: [{ secret: other }] }] }));
    const [first, second] = (await subscribed().get(id)).signingKeys;
    expect(first).toMatchObject({ endsAt: null });
    expect(second!.endsAt! - Date.now()).toBeGreaterThan(86_000_000);
    expect((await plan(jsonFile({ subscriptions: [{ id, signingKeys: [{ secret: other }] }] }))).changes).toEqual([]);
    await apply(jsonFile({ subscriptions: [{ id, signingKeys: [] }] }));
    expect((await subscribed().get(id)).signingKeys).toHaveLength(1);
  });

  it('enables a subscription whose callback it changes', async () => {
    const { id } = await subscription();
    await subscribed().disable(id);
    expect((await plan(jsonFile({ subscriptions: [{ id, maxConcurrency: 1 }] }))).changes[0]!.fields).toHaveLength(1);
    const path = jsonFile({ subscriptions: [{ id, callbackUrl: 'https://receiver.example.org/new' }] });
    expect((await plan(path)).changes[0]!.fields).toContainEqual({ name: 'isDisabled', before: true, after: false });
    await apply(path);
    expect(await subscribed().get(id)).toMatchObject({ disabledAt: null });
  });

  it('of Open Notificaties is applied as it is, and names what has no counterpart', async () => {
    const path = inProject('test/support/files/open-notificaties.yaml');
    const { exit, notes } = await heraut('apply', '-f', path);
    expect([exit, notes]).toEqual([0, expect.any(String)]);
    const noted = notes.split('\n').map((line) => line.replace(/^.*:\d+:\d+ ([^:]+): .*/, '$1'));
    expect(noted).toEqual(
      expect.arrayContaining([
        'oidc_db_config_admin_auth',
        'zgw_consumers',
        'autorisaties_api',
        'notifications_subscriptions_config',
        'sites_config',
        'own_extension',
        'notifications_config.notifications_api_service_identifier',
        'notifications_abonnementen_config.items.1.send_cloudevents',
      ]),
    );
    expect(await subscribed().get('7bd3cb46-8a0e-4e4c-9d5a-6a5d2a1d8f33')).toMatchObject({
      ownerClientId: 'superuser',
      auth: variables.OBJECTEN_AUTH,
      channels: [
        { channel: 'zaken', filters: { bronorganisatie: '002220647' } },
        { channel: 'zaken', filters: { vertrouwelijkheidaanduiding: 'openbaar' } },
      ],
    });
    // Its receiver reads CloudEvents, and nothing else was ever sent to it.
    expect(await subscribed().get('3a0f6a53-5b0e-4b8c-8a63-1f4f1d9f3c44')).toMatchObject({
      credentials: { kind: 'zgw', clientId: 'notificaties', secret: variables.DWH_SECRET },
      channels: [],
      pausedAt: null,
    });
    // A field that the file does not name stays: theirs would have set it to its default, and ignored the 0.
    expect((await admin.get('/admin/v1/retry-policy')).json).toMatchObject({
      maxRetries: 0,
      backoffFactor: 3,
      maxDelaySeconds: 52_000,
      jitter: 0.1,
    });
    expect((await plan(path)).changes).toEqual([]);
    const { id } = (
      (await admin.get('/admin/v1/applications')).json.applications as { id: string; clientId: string }[]
    ).find(({ clientId }) => clientId === 'open-zaak')!;
    await admin.patch(`/admin/v1/applications/${id}`, { scopes: ['notificaties.publiceren'] });
    expect((await plan(path)).changes).toEqual([]);
    await apply(example); // the retry policy that the other tests know
  });

  it('of Open Notificaties is checked as a subscription is, by its own lines', async () => {
    const text = readFileSync(inProject('test/support/files/open-notificaties.yaml'), 'utf8');
    const path = file(
      text
        .replace('vertrouwelijkheidaanduiding: openbaar', 'misspelt: openbaar')
        .replace('https://dwh.gemeente.example.nl/notificaties', 'not a url')
        .replace('uuid: 9d8f2c5e-0b36-4c0f', 'uuid: 9d8f2c5e-0b36-1c0f')
        .replace('notification_delivery_max_retries: 0', 'notification_delivery_max_retry: 0'),
    );
    const lineOf = (part: string) =>
      readFileSync(path, 'utf8')
        .split('\n')
        .findIndex((line) => line.includes(part)) + 1;
    const { exit, notes } = await heraut('plan', '-f', path);
    expect(exit).toBe(1);
    const told = notes
      .split('\n')
      .map((line) => line.replace(`${path}:`, '').replace(/^(\d+):\d+ ([^:]+): .*/, '$1 $2'));
    expect(told).toEqual(
      expect.arrayContaining([
        `${lineOf('misspelt')} notifications_abonnementen_config.items.0.kanalen.1.filters`,
        `${lineOf('not a url')} notifications_abonnementen_config.items.1.callback_url`,
        `${lineOf('9d8f2c5e')} notifications_abonnementen_config.items.2.uuid`,
        `${lineOf('max_retry')} notifications_config.notification_delivery_max_retry`,
      ]),
    );
  });

  it('does not resume what is still being dropped', async () => {
    const { id } = await subscription({ isPaused: true });
    const postgres = admin.api.app.get(Postgres);
    await postgres.dataSource.query('INSERT INTO held_drop (subscription_id, up_to) VALUES ($1, $2)', [id, id]);
    const { exit, notes } = await heraut('apply', '-f', jsonFile({ subscriptions: [{ id, isPaused: false }] }));
    expect([exit, notes]).toEqual([
      1,
      expect.stringContaining('subscriptions.0.isPaused: Its held deliveries are still'),
    ]);
  });

  it('leaves paused at a start what is still being dropped, which only a start can end, and applies the rest', async () => {
    const { id } = await subscription({ isPaused: true });
    const { dataSource } = admin.api.app.get(Postgres);
    await dataSource.query('INSERT INTO held_drop (subscription_id, up_to) VALUES ($1, $2)', [id, id]);
    const wanted = { id, isPaused: false, ratePerSecond: 7 };
    const path = file('subscriptions:', `  - ${JSON.stringify(wanted)}`);
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    try {
      await startWith(path).onModuleInit();
      const note = expect.stringMatching(/\.yaml:2:\d+ subscriptions\.0\.isPaused: It stays paused\. .* dropped/);
      expect(loggedOf(warn)).toEqual([{ event: 'configuration.note', note }]);
      expect(await subscribed().get(id)).toMatchObject({ pausedAt: expect.any(Date), ratePerSecond: 7 });
      await dataSource.query('DELETE FROM held_drop WHERE subscription_id = $1', [id]);
      await startWith(path).onModuleInit();
      expect(warn).toHaveBeenCalledTimes(1);
    } finally {
      warn.mockRestore();
    }
    expect(await subscribed().get(id)).toMatchObject({ pausedAt: null, ratePerSecond: 7 });
  });

  it('of Open Notificaties without kanalen goes at a start without those that publishers make later', async () => {
    const [first, second, naam, there] = [randomUUID(), randomUUID(), `late-${randomUUID()}`, `known-${randomUUID()}`];
    await apply(jsonFile({ channels: [{ name: there }] }));
    const abonnement = (uuid: string, ...kanalen: string[]) =>
      `    - { uuid: ${uuid}, callback_url: 'https://r.example.org/', auth: x, kanalen: [${kanalen.map((kanaal) => `{ naam: ${kanaal} }`).join(', ')}] }`;
    const path = file(
      'notifications_abonnementen_config_enable: true',
      'notifications_abonnementen_config:',
      '  items:',
      abonnement(first, naam, there),
      abonnement(second, there),
    );
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const place = /yaml:4:\d+ notifications_abonnementen_config\.items\.0\.kanalen\.0\.naam: There is no channel late-/;
    const waiting = () => warn.mock.calls.filter(([line]) => place.test((line as { note?: string }).note ?? '')).length;
    try {
      await startWith(path).onModuleInit();
      expect([waiting(), (await subscribed().get(first)).channels]).toMatchObject([1, [{ channel: there }]]);
      expect(await subscribed().get(second)).toMatchObject({ channels: [{ channel: there }] });
      // A request can be repeated, and a file that names channels should name all that it means.
      expect((await heraut('plan', '-f', path)).exit).toBe(1);
      const channels = [{ name: there }];
      const entry = { id: first, channels: [{ channel: naam }], callbackUrl: 'https://r.example.org/' };
      const own = jsonFile({ channels, subscriptions: [{ ...entry, authorization: { kind: 'verbatim', auth: 'x' } }] });
      await expect(startWith(own).onModuleInit()).rejects.toThrow('subscriptions.0.channels.0.channel');
      await apply(jsonFile({ channels: [{ name: naam }] }));
      await startWith(path).onModuleInit();
      const { channels: all } = await subscribed().get(first);
      expect([waiting(), all.map(({ channel }) => channel)]).toEqual([1, [naam, there]]);
    } finally {
      warn.mockRestore();
    }
  });

  it('is applied at a start, but for a channel that publishers make later, and takes none away for it', async () => {
    const [before, other, late] = [`before-${randomUUID()}`, `other-${randomUUID()}`, `late-${randomUUID()}`];
    await apply(jsonFile({ channels: [{ name: before }, { name: other }] }));
    const { id } = await subscription({ channels: [{ channel: before }] });
    const wanted = { id, isPaused: true, ratePerSecond: 7, channels: [{ channel: late }, { channel: other }] };
    const path = file('subscriptions:', `  - ${JSON.stringify(wanted)}`);
    const channels = async () => (await subscribed().get(id)).channels.map(({ channel }) => channel);
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const log = vi.spyOn(Logger.prototype, 'log').mockImplementation(() => {});
    try {
      await startWith(path).onModuleInit();
      const note = expect.stringMatching(
        /\.channels\.0\.channel: There is no channel late-.* goes without it, and keeps/,
      );
      expect(loggedOf(warn)).toEqual([{ event: 'configuration.note', note }]);
      expect(await subscribed().get(id)).toMatchObject({ pausedAt: expect.any(Date), ratePerSecond: 7 });
      expect(await channels()).toEqual([other, before]);
      log.mockClear();
      await startWith(path).onModuleInit();
      expect(loggedOf(log)).toEqual([expect.objectContaining({ event: 'configuration.unchanged' })]);
      await apply(jsonFile({ channels: [{ name: late }] }));
      await startWith(path).onModuleInit();
      expect(await channels()).toEqual([late, other]);
    } finally {
      warn.mockRestore();
      log.mockRestore();
    }
  });

  /** Starts with a file of this subscription alone, of whose channels some are not there. */
  async function startWaitingFor(wanted: { id: string; [field: string]: unknown }): Promise<string[]> {
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    try {
      await startWith(file('subscriptions:', `  - ${JSON.stringify(wanted)}`)).onModuleInit();
      const note = expect.stringMatching(/There is no channel late-.* goes without it, until/);
      expect(loggedOf(warn)).toEqual([{ event: 'configuration.note', note }]);
    } finally {
      warn.mockRestore();
    }
    return (await subscribed().get(wanted.id)).channels.map(({ channel }) => channel);
  }

  it('gives no channel that it does not name to another callback or owner, while one is not there yet', async () => {
    const clientId = randomUUID();
    const secret = `owner-${randomUUID()}`;
    secretWatch.know(secret);
    await apply(jsonFile({ applications: [{ clientId, secret, scopes: ['notificaties.consumeren'] }] }));
    for (const change of [{ callbackUrl: 'https://other.example.org/' }, { ownerClientId: clientId }]) {
      const { id } = await subscription();
      expect(await startWaitingFor({ id, ...change, channels: [{ channel: `late-${randomUUID()}` }] })).toEqual([]);
      expect(await subscribed().get(id)).toMatchObject(change);
    }
  });

  it('resumes nothing on a channel that it does not name, while one is not there yet', async () => {
    const { id } = await subscription({ isPaused: true });
    const wanted = { id, isPaused: false, channels: [{ channel: `late-${randomUUID()}` }] };
    expect(await startWaitingFor(wanted)).toEqual([]);
    expect(await subscribed().get(id)).toMatchObject({ pausedAt: null });
  });

  it('gives a subscription no more entries than one may have, while a channel is not there yet', async () => {
    const [before, other] = [`before-${randomUUID()}`, `other-${randomUUID()}`];
    await apply(jsonFile({ channels: [{ name: before }, { name: other }] }));
    const entries = (channel: string) => Array.from({ length: 300 }, () => ({ channel }));
    const { id } = await subscription({ channels: entries(before) });
    const channels = [{ channel: `late-${randomUUID()}` }, ...entries(other)];
    expect(await startWaitingFor({ id, channels })).toEqual(entries(other).map(({ channel }) => channel));
  });

  it('changes nothing when the last of its changes fails', async () => {
    const name = `channel-${randomUUID()}`;
    const fails = vi.spyOn(RetryPolicyChanges.prototype, 'replaceGeneral').mockRejectedValueOnce(new Error('no'));
    const body = { channels: [{ name }], retryPolicy: { jitter: 0.7 }, alertRules: { groupSeconds: 7 } };
    const answer = await admin.api.post(`${admin.api.origin}/admin/v1/configuration/apply`, body);
    expect(answer.status).toBe(500);
    expect(fails).toHaveBeenCalledTimes(1);
    fails.mockRestore();
    const left = (await plan(jsonFile(body))).changes.map(({ section }) => section);
    expect(left).toEqual(['channels', 'alertRules', 'retryPolicy']);
  });
});
