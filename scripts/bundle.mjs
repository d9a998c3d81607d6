// Second half of `npm run build`: joins the programs that tsc has compiled, and the packages they import, into a few files:
// to load the 1,300 that they are would take most of a start of Heraut. `dist/main.js` and `dist/dispatch-once.js` begin.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as esbuild from 'esbuild';
import { requireFromHere, unbundledPackages } from './unbundled-packages.mjs';

const project = fileURLToPath(new URL('..', import.meta.url));
const programs = ['main', 'dispatch-once'];

/** Every line of a package counts as its first: to read a map of all of them would take 100 ms. */
const packageMap = Buffer.from(JSON.stringify({ version: 3, sources: [''], mappings: 'AAAA' })).toString('base64');

await esbuild.build({
  absWorkingDir: project,
  entryPoints: programs.map((name) => `dist/src/${name}.js`),
  outdir: 'dist/bundle',
  bundle: true,
  splitting: true,
  platform: 'node',
  target: 'node20.19',
  format: 'esm',
  external: unbundledPackages,
  // The name of a migration is that of its class.
  keepNames: true,
  legalComments: 'none',
  sourcemap: true,
  sourcesContent: false,
  banner: { js: requireFromHere },
  logLevel: 'warning',
  plugins: [
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

// Source maps are read for what is loaded after this. Stack traces name the files and lines of src with them.
for (const name of programs) {
  writeFileSync(
    `${project}dist/${name}.js`,
    `process.setSourceMapsEnabled(true);\nawait import('./bundle/${name}.js');\n`,
  );
}
