import { joinedPackages } from './test/support/joined-packages.mjs';

/** @type {[string, unknown]} */
const swc = [
  '@swc/jest',
  {
    swcrc: false,
    sourceMaps: 'inline',
    module: { type: 'es6' },
    jsc: {
      target: 'es2023',
      keepClassNames: true,
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
    },
  },
];

/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  // Most suites wait for servers and processes; Jest by itself would use one worker on two cores. Five, with the browser beside them,
  // saved half a minute in twelve, and tests waited in vain.
  maxWorkers: 3,
  testSequencer: '<rootDir>/test/support/servers-first.mjs',
  // Kept from run to run. Jest's own choice is below the directory for temporary files, which is another in each run.
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
  roots: ['<rootDir>/src', '<rootDir>/test', '<rootDir>/web/src'],
  // Unit specs beside the code (.spec.ts), the rest under test/ (also .e2e-spec.ts).
  testMatch: ['**/*[.-]spec.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1', ...joinedPackages },
  globalSetup: '<rootDir>/test/support/joined-packages.mjs',
  // No test may have seen a secret in a line of the log or in an answer.
  setupFilesAfterEnv: ['<rootDir>/test/support/no-leaks.ts'],
  transform: { '^.+\\.ts$': swc },
  injectGlobals: false,
  // Each test stands alone: a new order in every run shows the one that does not.
  randomize: true,
  // Ends a test that hangs. Longer than `eventually` waits several times, which says what is missing.
  testTimeout: 600_000,
};
