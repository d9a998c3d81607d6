import { existsSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { defineConfig } from 'vitest/config';
import OrderOfFiles from './test/support/order-of-files.mjs';

const project = fileURLToPath(new URL('.', import.meta.url));

/**
 * Specs import `src/…/x.js`, and get what `npm run build` made of it: the program as it is delivered, loaded by Node itself.
 * @type {import('vite').Plugin}
 */
const compiledProgram = {
  name: 'compiled-program',
  enforce: 'pre',
  resolveId(source, importer) {
    if (!importer || !/^\.{1,2}\/.*\.js$/.test(source)) return null;
    const path = relative(project, resolve(dirname(importer), source));
    if (!/^(src|migrations)\//.test(path)) return null;
    const compiled = resolve(project, 'dist', path);
    // Vite would load the source: a second copy of what the program has, without what decorators need.
    if (!existsSync(compiled)) throw new Error(`dist/${path} is not there: run \`npm run build\` before Vitest.`);
    return { id: pathToFileURL(compiled).href, external: true };
  },
};

export default defineConfig({
  plugins: [compiledProgram],
  test: {
    // Unit specs beside the code (.spec.ts), the rest under test/ (also .e2e-spec.ts).
    include: ['{src,test,web/src}/**/*[.-]spec.ts'],
    // The files that a process runs share the loaded program, and what V8 has made of it: half of what they cost with a new one each.
    pool: 'forks',
    isolate: false,
    // With these, and a browser beside them, two cores are hardly idle. With more of them tests wait in vain.
    maxWorkers: 3,
    // PGlite runs for seconds in a test process: to optimize its code costs more than it gains.
    execArgv: ['--liftoff-only'],
    // Each test stands alone: a new order in every run shows the one that does not.
    sequence: { sequencer: OrderOfFiles, shuffle: { tests: true } },
    // No test may have seen a secret in a line of the log or in an answer.
    setupFiles: ['test/support/no-leaks.ts'],
    // End a test that hangs. Longer than `eventually` waits several times, which says what is missing.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    slowTestThreshold: 20_000,
  },
});
