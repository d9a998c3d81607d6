import { readdirSync } from 'node:fs';

/**
 * Which capability may import which: arrows point one way, so every folder can be read without the folders that import it.
 * A new folder in src gets its line here (test/architecture.spec.ts insists).
 *
 * Two capabilities have a folder for writing and another for showing, or the arrows would make a circle: auth notes in `audit`, and
 * `audit-entries` asks auth who its caller is; the ledger reports in `operational-events`, and `live-events` looks things up in the ledger.
 *
 * @type {Record<string, string[]>}
 */
export const arrows = {
  config: [],
  infra: ['config'],
  supervision: ['infra', 'config'],
  secrets: ['infra', 'config'],
  openapi: ['infra'],
  'operational-events': [],
  outbound: ['config'],
  telemetry: ['infra', 'config'],
  liveness: ['supervision', 'infra', 'config'],
  signing: [],
  audit: ['infra'],
  catalogue: ['audit', 'infra'],
  ledger: ['liveness', 'operational-events', 'infra', 'config'],
  activity: ['liveness', 'operational-events', 'infra'],
  'live-events': ['auth', 'ledger', 'liveness', 'operational-events', 'openapi', 'infra'],
  queue: ['supervision', 'ledger', 'liveness', 'infra', 'config'],
  idempotency: ['liveness', 'infra'],
  'request-keys': ['secrets', 'ledger', 'infra', 'config'],
  credentials: ['liveness', 'outbound', 'infra'],
  auth: ['secrets', 'request-keys', 'audit', 'catalogue', 'liveness', 'openapi', 'infra', 'config'],
  sessions: ['auth', 'audit', 'catalogue', 'liveness', 'outbound', 'openapi', 'infra', 'config'],
  nrc: ['auth', 'openapi', 'infra'],
  channels: ['nrc', 'auth', 'audit', 'catalogue', 'outbound', 'openapi', 'infra', 'config'],
  subscriptions: [
    'channels',
    'nrc',
    'auth',
    'credentials',
    'secrets',
    'request-keys',
    'audit',
    'ledger',
    'catalogue',
    'liveness',
    'outbound',
    'signing',
    'operational-events',
    'openapi',
    'infra',
    'config',
  ],
  endpoints: [
    'subscriptions',
    'auth',
    'audit',
    'catalogue',
    'ledger',
    'liveness',
    'operational-events',
    'openapi',
    'infra',
    'config',
  ],
  console: ['infra'],
  digests: ['channels', 'ledger', 'infra'],
  'retry-policy': ['subscriptions', 'auth', 'audit', 'catalogue', 'openapi', 'infra'],
  'configuration-file': [
    'alerts',
    'retry-policy',
    'subscriptions',
    'channels',
    'auth',
    'credentials',
    'signing',
    'secrets',
    'audit',
    'ledger',
    'catalogue',
    'outbound',
    'operational-events',
    'openapi',
    'infra',
    'config',
  ],
  publishing: [
    'activity',
    'endpoints',
    'subscriptions',
    'channels',
    'nrc',
    'auth',
    'request-keys',
    'queue',
    'ledger',
    'catalogue',
    'live-events',
    'liveness',
    'operational-events',
    'telemetry',
    'openapi',
    'infra',
    'config',
  ],
  delivery: [
    'activity',
    'endpoints',
    'retry-policy',
    'subscriptions',
    'credentials',
    'idempotency',
    'queue',
    'ledger',
    'catalogue',
    'signing',
    'live-events',
    'liveness',
    'outbound',
    'telemetry',
    'infra',
    'config',
  ],
  deliveries: [
    'digests',
    'channels',
    'delivery',
    'subscriptions',
    'auth',
    'audit',
    'catalogue',
    'ledger',
    'openapi',
    'infra',
  ],
  'test-calls': [
    'deliveries',
    'delivery',
    'subscriptions',
    'credentials',
    'idempotency',
    'auth',
    'audit',
    'liveness',
    'outbound',
    'openapi',
    'infra',
    'config',
  ],
  notifications: ['deliveries', 'endpoints', 'subscriptions', 'auth', 'ledger', 'openapi', 'infra'],
  'audit-entries': ['auth', 'openapi', 'infra'],
  pulling: [
    'activity',
    'digests',
    'publishing',
    'subscriptions',
    'nrc',
    'auth',
    'ledger',
    'liveness',
    'infra',
    'config',
  ],
  explaining: [
    'publishing',
    'endpoints',
    'subscriptions',
    'channels',
    'auth',
    'ledger',
    'catalogue',
    'liveness',
    'openapi',
    'infra',
  ],
  replays: [
    'deliveries',
    'publishing',
    'endpoints',
    'subscriptions',
    'auth',
    'request-keys',
    'audit',
    'ledger',
    'catalogue',
    'openapi',
    'infra',
    'config',
  ],
  'dead-letters': [
    'deliveries',
    'subscriptions',
    'auth',
    'ledger',
    'catalogue',
    'liveness',
    'operational-events',
    'openapi',
    'infra',
  ],
  retention: [
    'delivery',
    'channels',
    'auth',
    'idempotency',
    'audit',
    'ledger',
    'liveness',
    'openapi',
    'infra',
    'config',
  ],
  moving: ['secrets', 'request-keys', 'audit', 'ledger', 'liveness', 'infra', 'config'],
  alerts: [
    'activity',
    'endpoints',
    'subscriptions',
    'auth',
    'audit',
    'catalogue',
    'ledger',
    'liveness',
    'signing',
    'outbound',
    'openapi',
    'infra',
    'config',
  ],
  dispatching: [
    'activity',
    'replays',
    'digests',
    'retention',
    'sessions',
    'operational-events',
    'endpoints',
    'retry-policy',
    'subscriptions',
    'audit',
    'catalogue',
    'idempotency',
    'queue',
    'ledger',
    'live-events',
    'liveness',
    'infra',
    'config',
  ],
  doctor: ['idempotency', 'queue', 'secrets', 'infra', 'config'],
  'command-line': ['configuration-file', 'doctor', 'ledger', 'infra'],
  health: ['alerts', 'idempotency', 'queue', 'liveness', 'openapi', 'infra', 'config'],
  overview: [
    'health',
    'alerts',
    'replays',
    'endpoints',
    'subscriptions',
    'auth',
    'queue',
    'activity',
    'ledger',
    'liveness',
    'openapi',
    'infra',
    'config',
  ],
};

/** The files that wire the capabilities together. */
const rootFiles = readdirSync(new URL('src', import.meta.url))
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.replace('.ts', '\\.js'));

/**
 * What the files of `folder` may not import, as patterns over the relative paths they would write.
 * @param {string} folder
 * @param {string[]} allowed
 * @param {string[]} closed folders beside src that stay closed as well
 */
const restrictedImports = (folder, allowed, closed) => [
  'error',
  {
    patterns: [
      ...Object.keys(arrows)
        .filter((other) => other !== folder && !allowed.includes(other))
        .map((other) => ({
          regex: `^(\\.\\./)+${other}/`,
          message: `${folder} may not import ${other}: see the arrows in oxlint.config.mjs.`,
        })),
      { regex: `^(\\.\\./)+(${closed.join('|')})/`, message: `${folder} is part of the program, this is not.` },
      {
        regex: `^(\\.\\./)+(${rootFiles.join('|')})$`,
        message: 'This wires the capabilities together; no capability knows it.',
      },
      // The patterns above know a path by its beginning.
      {
        regex: '^\\./\\.\\./|[^.]/\\.\\.?/|(^|/)\\.\\./src/',
        message: 'Write the shortest path: first the steps up, no way out of src and back.',
      },
      // migrations/index.ts is the one list that has this name; infra reads it.
      ...(folder === 'infra'
        ? []
        : [{ regex: 'index\\.js$', message: 'Import the file itself: barrels make cycles.' }]),
    ],
  },
];

const arrowOverrides = Object.entries(arrows).flatMap(([folder, allowed]) => [
  {
    files: [`src/${folder}/**/*.ts`],
    rules: { 'no-restricted-imports': restrictedImports(folder, allowed, ['test', 'scripts', 'dist']) },
  },
  {
    files: [`src/${folder}/**/*.spec.ts`],
    rules: { 'no-restricted-imports': restrictedImports(folder, allowed, ['dist']) },
  },
]);

export default {
  plugins: ['eslint', 'typescript', 'import', 'node', 'promise', 'unicorn', 'oxc', 'vitest'],
  categories: { correctness: 'error' },
  options: { typeAware: true, typeCheck: true },
  ignorePatterns: ['dist', 'dist.new*', 'dist.old', 'data', 'coverage', 'web/generated', 'web/test-results'],
  rules: {
    // A circle of types is still a circle of reasons to change.
    'import/no-cycle': ['error', { ignoreTypes: false }],
    'import/no-self-import': 'error',
    'import/no-duplicates': ['error', { 'prefer-inline': true }],
    'node/no-process-env': 'error',

    'eslint/eqeqeq': 'error',
    'eslint/no-var': 'error',
    'eslint/prefer-const': 'error',
    'eslint/no-console': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/ban-ts-comment': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': ['error', { checksVoidReturn: { properties: false } }],
    'typescript/await-thenable': 'error',
    'typescript/prefer-promise-reject-errors': 'error',
    'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    'typescript/return-await': ['error', 'error-handling-correctness-only'],
    'typescript/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
    // Copying a set before its members take themselves out of it.
    'unicorn/no-useless-spread': 'off',
    // PGlite's pg configuration is meant to be spread.
    'typescript/no-misused-spread': 'off',
    // Waiting for a condition fails when it never comes true: that is an assertion.
    'vitest/expect-expect': ['error', { assertFunctionNames: ['expect', 'expect*', 'eventually'] }],
    'vitest/no-standalone-expect': [
      'error',
      { additionalTestBlockFunctions: ['beforeAll', 'beforeEach', 'afterEach', 'afterAll'] },
    ],
    // Some tests are of one stack alone.
    'vitest/no-conditional-tests': 'off',
    'vitest/no-focused-tests': 'error',
    'vitest/no-disabled-tests': 'error',
  },
  overrides: [
    ...arrowOverrides,
    // The root files start the program: they read the environment and may print before there is a logger.
    { files: ['src/*.ts'], rules: { 'node/no-process-env': 'off', 'eslint/no-console': 'off' } },
    {
      files: ['test/**/*.ts', 'scripts/**/*.mjs', '*.mjs', 'web/*.ts', 'web/*.mjs', 'web/e2e/**/*.ts'],
      rules: { 'node/no-process-env': 'off', 'eslint/no-console': 'off' },
    },
    // Playwright reads from the pattern which fixtures a fixture needs, and insists on one.
    { files: ['web/e2e/**/*.ts'], rules: { 'eslint/no-empty-pattern': 'off' } },
    {
      files: ['src/**/*.spec.ts', 'test/**/*.ts', 'web/e2e/**/*.ts'],
      rules: {
        'typescript/unbound-method': 'off',
        'typescript/restrict-template-expressions': 'off',
        'typescript/require-array-sort-compare': 'off',
      },
    },
  ],
};
