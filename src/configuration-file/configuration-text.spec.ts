import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../config/settings.js';
import type { InvalidParam } from '../infra/http/problem.js';
import { asLine, readConfigurationText } from './configuration-text.js';
import { readConfiguration } from './read-configuration.js';
import type { Sources } from './resolve-references.js';

const sources = (variables: Record<string, string> = {}, files: Record<string, string> = {}): Sources => ({
  variable: (name) => variables[name],
  file: (path) => {
    if (path in files) return files[path]!;
    throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
  },
});

/** With its remarks as lines. */
function read(lines: readonly string[], from = sources()) {
  const { problems, notes, remarksOn, ...text } = readConfigurationText(lines.join('\n'), from);
  const line = asLine('f.yaml');
  const linesOf = (found: readonly InvalidParam[]) => remarksOn(found).map(line);
  return { ...text, problems: problems.map(line), notes: notes.map(line), linesOf };
}

describe('a configuration file', () => {
  it('is an empty configuration where it is empty', () => {
    expect(read([])).toMatchObject({ configuration: {}, problems: [], notes: [] });
  });

  it.each([
    [['a: [1', 'b: 2'], /^f\.yaml:\d+:\d+ /],
    [['a: 1', 'a: 2'], /^f\.yaml:2:1 Map keys must be unique/],
    [['a: !unknown x'], /^f\.yaml:1:4 /],
    [['a: 1', '---', 'b: 1'], /^f\.yaml:\d:\d /],
  ])('that is no YAML is told by its lines: %j', (lines, problem) => {
    const { configuration, problems } = read(lines);
    expect(configuration).toBeUndefined();
    expect(problems).not.toEqual([]);
    expect(problems[0]).toMatch(problem);
  });

  it.each([[['- a: 1']], [['applications']], [['7']]])(
    'that is YAML of another form says what is wanted: %j',
    (lines) => {
      const { configuration, problems } = read(lines);
      expect(configuration).toBeUndefined();
      expect(problems).toEqual([
        expect.stringMatching(/^f\.yaml:1:1 Is no configuration: a mapping with keys such as \w+, /),
      ]);
    },
  );

  it('whose text is read as an alias or a tag is told by its line, without that text', () => {
    const { problems } = read(['a: &one 1', 'b: *one', 'auth: *s3cret', 'c: [1, *oth3r]']);
    expect(problems).toEqual([
      'f.yaml:3:7 There is no anchor before this alias. A text that begins with * needs quotes.',
      'f.yaml:4:8 There is no anchor before this alias. A text that begins with * needs quotes.',
    ]);
    expect(read(['a: 1', 'auth: !s3cret']).problems).toEqual([
      'f.yaml:2:7 There is no such tag here. A text that begins with ! needs quotes.',
    ]);
  });

  it.each([
    '>s3cret',
    '|s3cret',
    '>\ts3cret',
    '>- s3cret',
    '|9s3cret',
    '}s3cret',
    ']s3cret',
    ', s3cret',
    '- s3cret',
    '? s3cret',
    '%s3cret',
    '@s3cret',
    '`s3cret',
    '"s3cret',
    '"a" s3cret',
    '"\\s3cret"',
    '"\\xs3cret"',
    "'s3cret",
    "'a's3cret",
    '[s3cret',
    '{s3cret',
    '[a]s3cret',
    '!!s3cret x',
    '!<s3cret> x',
    '!s3cret! x',
    '!!map s3cret',
    '!!int s3cret',
    '!!binary s3cret',
    '&s3cret &s3cret x',
    '*s3cret',
    's3cret: s3cret',
  ])('whose text cannot be read is told by its line, and never quoted: %s', (secret) => {
    for (const lines of [
      ['a: 1', `auth: ${secret}`],
      ['a: 1', `auth: {b: ${secret}}`],
      ['a:', `  - ${secret}`, 'b: 1'],
      [`${secret}`, '---', 'b: 1'],
    ]) {
      const { problems } = read(lines);
      // A text that stands in the place of a key is named by its path, as any key is.
      expect(problems.filter((line) => !/^f\.yaml:\d+:\d+ s3cret/.test(line)).join('\n')).not.toMatch(/[s]?3cret/);
    }
    expect(read(['a: 1', `auth: {b: ${secret}`]).problems).not.toEqual([]);
  });

  it('is quoted in no warning of this process, such as one of a key that is a list', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    for (const secret of ['{{ s3cret }}', '{[s3cret]: x}', '{? {s3cret: 1} : x}']) read(['a: 1', `auth: ${secret}`]);
    expect(read(['a: 1', '---', 'b: 1']).problems).toEqual([expect.stringContaining('multiple documents')]);
    await new Promise(setImmediate); // they are emitted on the next tick
    process.off('warning', note);
    expect(warnings).toEqual([]);
  });

  it('that has a text which needs quotes says so', () => {
    for (const secret of ['>s3cret', '|s3cret', '}s3cret', ']s3cret']) {
      expect(read(['a: 1', `auth: ${secret}`]).problems).toContainEqual(
        expect.stringMatching(/^f\.yaml:2:\d+ .*A text that begins with > \| } ] or , needs quotes\.$/),
      );
    }
  });

  it('has no key but those that it may have, whatever objects have by themselves', async () => {
    const { configuration, problems, notes } = read(['constructor: 1', 'channels: []']);
    expect([problems, notes]).toEqual([[], []]);
    const found: InvalidParam[] = [];
    await readConfiguration(configuration, found);
    expect(found).toMatchObject([{ name: 'constructor', code: 'unknown' }]);
    expect(read(['sites_config_enable: false', 'toString: 1']).notes).toEqual([
      expect.stringContaining('f.yaml:2:1 toString'),
    ]);
  });

  it('does not let aliases grow without bounds', () => {
    const lines = ['a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]'];
    for (let nr = 1; nr < 9; nr++)
      lines.push(
        `a${nr}: &a${nr} [${Array(9)
          .fill(`*a${nr - 1}`)
          .join(', ')}]`,
      );
    expect(read(lines).problems).toEqual([expect.stringContaining('f.yaml:1:1')]);
    // So few aliases that the parser lets them through.
    const wide = `b: &b [${Array(10_000).fill('1').join(', ')}]`;
    expect(read([wide, `c: [${Array(60).fill('*b').join(', ')}]`]).problems).toEqual([
      'f.yaml:1:1 With what its aliases stand for it has more values than a text of its length may have.',
    ]);
  });

  it('may be as long as it is, where it has no aliases', () => {
    const count = 510_000;
    const { configuration, problems } = read([
      `channels: [{ filters: [${Array<string>(count).fill('a').join(',')}] }]`,
    ]);
    expect(problems).toEqual([]);
    expect((configuration as { channels: { filters: unknown[] }[] }).channels[0]!.filters).toHaveLength(count);
  });

  it('is not nested without bounds', () => {
    const problems = ['f.yaml:1:1 It is nested too deeply.'];
    expect(read([`a: ${'['.repeat(60)}${']'.repeat(60)}`]).problems).toEqual(problems);
    expect(read(['a: &self [*self]']).problems).toEqual(problems);
  });

  it('has no more anchors and aliases than can be looked through', () => {
    const named = (anchor: string) => Array.from({ length: 6000 }, (_, nr) => `&a${nr} 1, *${anchor}${nr}`).join(', ');
    // Whether there is such an anchor or not.
    for (const anchor of ['a', 'b'])
      expect(read([`a: [${named(anchor)}]`]).problems).toEqual([
        'f.yaml:1:1 It has more than 10000 anchors and aliases.',
      ]);
  });

  it('has no key twice, wherever that is, and tells a limited number of them', () => {
    expect(read(['a: [{ b: { c: 1, d: 1, c: 2 } }]', 'e: 1', 'e: 2']).problems).toEqual([
      'f.yaml:3:1 Map keys must be unique',
      'f.yaml:1:24 Map keys must be unique',
    ]);
    expect(read([`a: { ${'b: 1, '.repeat(1000)} }`]).problems).toHaveLength(50);
  });

  it('takes values from variables and files, and the default where one is unset or empty', () => {
    const lines = [
      'retryPolicy:',
      '  maxRetries: { value_from: { env: RETRIES } }',
      '  backoffFactor: { value_from: { env: EMPTY, default: 3 } }',
      '  baseFactor: { value_from: { file: factor } }',
      '  maxDelaySeconds: { value_from: { file: missing, default: "60" } }',
      '  jitter: { value_from: { env: EMPTY, required: false } }',
    ];
    const { configuration, problems } = read(lines, sources({ RETRIES: '5', EMPTY: '' }, { factor: '2.5\n' }));
    expect(problems).toEqual([]);
    expect(configuration).toEqual({
      retryPolicy: { maxRetries: 5, backoffFactor: 3, baseFactor: 2.5, maxDelaySeconds: 60 },
    });
  });

  it('tells every reference that leads nowhere, by its line', () => {
    const { problems } = read([
      'applications:',
      '  - clientId: a',
      '    secret: { value_from: { env: NONE } }',
      '    scopes: [{ value_from: { env: NONE, required: false } }]',
      '    label: { value_from: { file: none } }',
      '    isSuperuser: { value_from: { variable: X } }',
    ]);
    expect(problems).toEqual([
      'f.yaml:3:13 applications.0.secret: The variable NONE is not set, or empty; `required: false` makes it optional.',
      'f.yaml:4:14 applications.0.scopes.0: An item of a list cannot be left out.',
      'f.yaml:5:12 applications.0.label: The file none is not set, or empty; `required: false` makes it optional.',
      'f.yaml:6:32 applications.0.isSuperuser.value_from: Must be `env` or `file`, with `default` or `required` or without, and nothing beside it.',
    ]);
  });

  it('reads a number or a truth value as it is written where a text is wanted', () => {
    const { configuration } = read([
      'subscriptions:',
      '  - id: x',
      '    channels:',
      '      - { channel: 1.10, filters: { bronorganisatie: 002220647, besloten: yes, open: true, "a.b": 0x1F } }',
    ]);
    expect(configuration).toMatchObject({
      subscriptions: [
        {
          channels: [
            {
              channel: '1.10',
              filters: { bronorganisatie: '002220647', besloten: 'yes', open: 'true', 'a.b': '0x1F' },
            },
          ],
        },
      ],
    });
  });

  it.each([
    ['an alias', '*bron'],
    ['the default of a reference', '{ value_from: { env: NONE, default: 002220647 } }'],
    ['an alias in the default of a reference', '{ value_from: { env: NONE, default: *bron } }'],
    ['an alias of a reference', '*reference'],
  ])('keeps the digits of a number that is given by %s', (_, number) => {
    const anchors = [
      'channels:',
      '  - name: &bron 002220647',
      '  - name: &reference { value_from: { file: none, default: 002220647 } }',
    ];
    const filters = { bronorganisatie: '002220647' };
    const own = ['subscriptions:', `  - { channels: [{ channel: x, filters: { bronorganisatie: ${number} } }] }`];
    expect(read([...anchors, ...own]).configuration).toMatchObject({
      channels: [{ name: '002220647' }, { name: '002220647' }],
      subscriptions: [{ channels: [{ filters }] }],
    });
    const theirs = [
      'anchors: [&bron 002220647, &reference { value_from: { file: none, default: 002220647 } }]',
      'notifications_kanalen_config_enable: true',
      `notifications_kanalen_config: { items: [{ naam: ${number} }] }`,
    ];
    expect(read(theirs).configuration).toMatchObject({ channels: [{ name: '002220647' }] });
  });

  it('takes the text of a variable, not the default beside it', () => {
    const from = sources({ BRON: '7' });
    const { configuration } = read(['channels: [{ name: { value_from: { env: BRON, default: 007 } } }]'], from);
    expect(configuration).toMatchObject({ channels: [{ name: '7' }] });
  });

  it('places what the server finds: at the value, at the key of what is unknown, at what is around what is missing', () => {
    const { linesOf } = read([
      'channels:',
      '  - &one',
      '    name: one',
      '    retries: 3',
      '    filters: [a, b]',
      '  - { <<: *one, name: two }',
      'subscriptions:',
      '  - headers: { x.y: v }',
    ]);
    const at = (name: string, code = 'invalid') => linesOf([{ name, code, reason: 'R.' }])[0];
    expect(at('channels.0.retries', 'unknown')).toBe('f.yaml:4:5 channels.0.retries: R.');
    expect(at('channels.0.filters.1')).toBe('f.yaml:5:18 channels.0.filters.1: R.');
    expect(at('channels.1.filters.1')).toBe('f.yaml:5:18 channels.1.filters.1: R.');
    expect(at('channels.1.name')).toBe('f.yaml:6:23 channels.1.name: R.');
    expect(at('channels.0.maxAgeSeconds')).toBe('f.yaml:3:5 channels.0.maxAgeSeconds: R.');
    expect(at('subscriptions.0.headers.x.y')).toBe('f.yaml:8:21 subscriptions.0.headers.x.y: R.');
    expect(at('')).toBe('f.yaml:1:1 R.');
  });

  it('does not tell twice what is wrong with one field', () => {
    const { linesOf } = read(['applications:', '  - { clientId: a, secret: { value_from: { env: NONE } } }']);
    expect(linesOf([{ name: 'applications.0.secret', code: 'required', reason: 'R.' }])).toEqual([]);
  });

  it('notes secrets in plain text, without showing them', () => {
    const { notes } = read([
      'applications: [{ clientId: a, secret: plain-1 }, { clientId: b, secret: { value_from: { env: X } } }]',
      'subscriptions: [{ headers: { x: plain-2 }, authorization: { auth: plain-3 }, channels: [{ filters: { key: v } }] }]',
    ]);
    expect(notes.map((note) => note.split(' ')[1])).toEqual([
      'applications.0.secret:',
      'subscriptions.0.headers.x:',
      'subscriptions.0.authorization.auth:',
    ]);
    expect(notes.join()).not.toContain('plain-');
  });

  it('names the settings, which there are, for the sign-in that a file of Open Notificaties describes', () => {
    const lines = ['notifications_kanalen_config_enable: true', 'notifications_kanalen_config: { items: [] }'];
    const { notes } = read([...lines, 'oidc_db_config_admin_auth: { items: [] }']);
    expect(notes).toEqual([
      expect.stringMatching(/^f\.yaml:3:1 oidc_db_config_admin_auth: .* docs\/running\.md#users$/),
    ]);
    const named = notes[0]!.match(/OIDC_\w+/g);
    expect(named).toContain('OIDC_ISSUER');
    expect(named!.filter((name) => !(name in settingsSchema.shape))).toEqual([]);
  });

  it('of Open Notificaties needs no variables and files for namespaces that are not carried out', () => {
    const { configuration, problems, references } = read(
      [
        'zgw_consumers_config_enable: true',
        'zgw_consumers: { services: [{ secret: { value_from: { env: NONE } } }] }',
        'oidc_db_config_admin_auth: { items: [{ oidc_rp_client_secret: { value_from: { file: none } } }] }',
        'vng_api_common_credentials_config_enable: { value_from: { env: OFF } }',
        'vng_api_common_credentials: { items: [{ identifier: a, secret: { value_from: { env: NONE } } }] }',
        'own_extension: { value_from: anything }',
        'notifications_kanalen_config_enable: { value_from: { env: ON } }',
        'notifications_kanalen_config: { items: [{ naam: { value_from: { env: NAME } } }] }',
      ],
      sources({ ON: 'true', OFF: 'false', NAME: 'cases' }),
    );
    expect({ configuration, problems }).toEqual({ configuration: { channels: [{ name: 'cases' }] }, problems: [] });
    expect(references.map(({ field }) => field)).toEqual([
      'vng_api_common_credentials_config_enable',
      'notifications_kanalen_config_enable',
      'notifications_kanalen_config.items.0.naam',
    ]);
  });

  it('of Open Notificaties needs those of its flags, and of what is carried out', () => {
    const { problems } = read([
      'notifications_config_enable: { value_from: { env: NONE } }',
      'notifications_kanalen_config_enable: true',
      'notifications_kanalen_config: { items: [{ naam: { value_from: { env: NONE } } }] }',
    ]);
    expect(problems.map((problem) => problem.split(' ')[1])).toEqual([
      'notifications_config_enable:',
      'notifications_kanalen_config.items.0.naam:',
      'notifications_kanalen_config.items.0.naam:',
    ]);
  });

  it('of Open Notificaties may have a 0 where a delay cannot be one, which is ignored and noted; no retries are none', () => {
    const { configuration, problems, notes } = read([
      'notifications_config_enable: true',
      'notifications_config:',
      '  notification_delivery_max_retries: 0',
      '  notification_delivery_retry_backoff: 0',
      '  notification_delivery_retry_backoff_max: "0"',
      '  notification_delivery_base_factor: 0.0',
    ]);
    expect(problems).toEqual([]);
    expect(configuration).toEqual({ retryPolicy: { maxRetries: 0 } });
    expect(notes).toEqual([
      'f.yaml:4:3 notifications_config.notification_delivery_retry_backoff: is left out: 0 is ignored, as by Open Notificaties',
      'f.yaml:5:3 notifications_config.notification_delivery_retry_backoff_max: is left out: 0 is ignored, as by Open Notificaties',
      'f.yaml:6:3 notifications_config.notification_delivery_base_factor: is left out: 0 is ignored, as by Open Notificaties',
    ]);
  });

  it('of Open Notificaties gives no kanalen to an abonnement whose receiver reads CloudEvents only, and says so', () => {
    const { configuration, notes } = read([
      'notifications_abonnementen_config_enable: true',
      'notifications_abonnementen_config:',
      '  items:',
      '    - uuid: 3a0f6a53-5b0e-4b8c-8a63-1f4f1d9f3c44',
      '      callback_url: https://dwh.example.nl/hook',
      '      auth: { value_from: { env: X } }',
      '      send_cloudevents: true',
      '      kanalen: [{ naam: zaken }]',
      '      cloudevent_filters: [a]',
      '    - uuid: 7bd3cb46-8a0e-4e4c-9d5a-6a5d2a1d8f33',
      '      callback_url: https://dwh.example.nl/other',
      '      auth: { value_from: { env: X } }',
      '      kanalen: [{ naam: zaken }]',
      '      cloudevent_filters: [a]',
    ]);
    expect(configuration).toMatchObject({ subscriptions: [{ channels: [] }, { channels: [{ channel: 'zaken' }] }] });
    expect(notes.filter((note) => note.includes('cloudevent'))).toEqual([
      expect.stringMatching(/^f\.yaml:7:7 \S+\.0\.send_cloudevents: .* gets nothing here/),
      expect.stringMatching(/^f\.yaml:14:7 \S+\.1\.cloudevent_filters: .* gets notificaties of its kanalen only/),
    ]);
  });

  it('of Open Notificaties has what is wrong with a list at its namespace, and with an item at that', () => {
    const { linesOf } = read([
      'notifications_kanalen_config_enable: true',
      'notifications_kanalen_config:',
      '  items: [{ naam: zaken }]',
    ]);
    const at = (name: string) => linesOf([{ name, code: 'invalid', reason: 'R.' }]);
    expect(at('channels')).toEqual(['f.yaml:3:3 notifications_kanalen_config: R.']);
    expect(at('channels.0')).toEqual(['f.yaml:3:11 notifications_kanalen_config.items.0: R.']);
    expect(at('channels.0.name')).toEqual(['f.yaml:3:19 notifications_kanalen_config.items.0.naam: R.']);
  });

  it('keeps the name of a header whose value is left out', () => {
    const lines = ['subscriptions: [{ headers: { x: { value_from: { env: NONE, required: false } } } }]'];
    expect(read(lines)).toMatchObject({ problems: [], configuration: { subscriptions: [{ headers: { x: null } }] } });
  });
});
