// Second step of `npm run build`: joins the programs that tsc has compiled, and the packages they import, into a few
// files: to load the 1,300 that they are would take most of a start of Heraut. `dist/main.js`, `dist/dispatch-once.js`,
// `dist/rotate-keys.js`, `dist/move-to-postgres.js` and `dist/heraut.js` (the command line) begin, and
// `dist/configuration-thread.js`, a thread of the first. The word is the directory, `dist` or one that becomes it.
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as esbuild from 'esbuild';
import { byLines } from './source-map-by-lines.mjs';
import { requireFromHere, unbundledPackages } from './unbundled-packages.mjs';

const project = fileURLToPath(new URL('..', import.meta.url));
const [directory = 'dist'] = process.argv.slice(2);
const programs = ['main', 'dispatch-once', 'rotate-keys', 'move-to-postgres', 'heraut', 'configuration-thread'];

/** The beginning of a class as tsc writes it. */
const classes = /^(?:export (?:default )?)?(?:let \w+ = (?:\w+ = )?)?(?:abstract )?class (\w+)[^{\n]*\{/gm;

/** Every line of a package counts as its first: to read a map of all of them would take 100 ms. */
const packageMap = Buffer.from(JSON.stringify({ version: 3, sources: [''], mappings: 'AAAA' })).toString('base64');

await esbuild.build({
  absWorkingDir: project,
  entryPoints: programs.map((name) => `${directory}/src/${name}.js`),
  outdir: `${directory}/bundle`,
  bundle: true,
  splitting: true,
  platform: 'node',
  target: 'node20.19',
  format: 'esm',
  external: unbundledPackages,
  legalComments: 'none',
  // A tenth of what a start takes: it reads these files. The names stay, so that stack traces can be read.
  minifyWhitespace: true,
  minifySyntax: true,
  sourcemap: true,
  sourcesContent: false,
  banner: { js: requireFromHere },
  logLevel: 'warning',
  plugins: [
    {
      // esbuild renames a class that refers to itself. A migration is known by the name of its class, and so are lines
      // of the log. With `keepNames` esbuild would name each function as well, whenever it is made: six per cent of a
      // delivery's CPU.
      name: 'class-names',
      setup: (build) => {
        build.onLoad({ filter: /\/dist(\.new\.\d+)?\/(src|migrations)\/.*\.js$/ }, ({ path }) => ({
          contents: readFileSync(path, 'utf8').replace(
            classes,
            (begin, /** @type {string} */ name) =>
              `${begin} static { Object.defineProperty(this, 'name', { value: '${name}', configurable: true }); }`,
          ),
          loader: 'js',
        }));
      },
    },
    {
      name: 'package-map',
      setup: (build) => {
        build.onLoad({ filter: /\/node_modules\/.*\.[cm]?js$/ }, ({ path }) => ({
          contents: `${readFileSync(path, 'utf8')}\n//# sourceMappingURL=data:application/json;base64,${packageMap}`,
          loader: 'default',
        }));
      },
    },
  ],
});

const bundle = `${project}${directory}/bundle/`;
for (const name of readdirSync(bundle).filter((each) => each.endsWith('.map')))
  writeFileSync(bundle + name, JSON.stringify(byLines(JSON.parse(readFileSync(bundle + name, 'utf8')))));

// Source maps are read for what is loaded after this. Stack traces name the files and lines of src with them.
for (const name of programs) {
  const [file, isCommand] = [`${project}${directory}/${name}.js`, name === 'heraut'];
  const shebang = isCommand ? '#!/usr/bin/env node\n' : '';
  writeFileSync(file, `${shebang}process.setSourceMapsEnabled(true);\nawait import('./bundle/${name}.js');\n`);
  if (isCommand) chmodSync(file, 0o755);
}
