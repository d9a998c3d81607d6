// Writes docs/licences.md from the lock; with --check it only says whether the file is up to date. It fails in both
// cases where a package comes under a licence that is not on the list below, or has no text of its licence: somebody
// has to look at it first.
import { writeOrCheck } from './generated.mjs';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { embedded, licenceTextOf } from './licence-texts.mjs';
import { productionPackages } from './production-packages.mjs';
import { projectDirectory } from './ready-to-run.mjs';

/** All allow use in a program of any licence, as long as their text goes along (0BSD: even without). */
const known = [
  '(MIT OR CC0-1.0)',
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
  'MIT-0',
  'Python-2.0',
  'Unlicense',
];

const packages = productionPackages();
await writeOrCheck('docs/licences.md', render(), { source: 'package-lock.json', command: 'docs:licences' });
for (const { name, version, licence } of packages.filter((each) => !known.includes(each.licence))) {
  console.error(`${name} ${version} comes under a licence that nobody has looked at yet: ${licence}`);
  process.exitCode = 1;
}
for (const { name, version, path } of packages) {
  const directory = join(projectDirectory, path);
  // One for another system is not installed.
  if (!existsSync(directory) || licenceTextOf(name, directory)) continue;
  console.error(`${name} ${version} has no text of its licence: scripts/licence-texts.mjs needs one.`);
  process.exitCode = 1;
}
const looked = packages.find(({ name }) => name === embedded.package)?.version;
if (looked !== embedded.packageVersion) {
  console.error(
    `Look at what ${embedded.package} ${looked} has within it, and write it into scripts/licence-texts.mjs.`,
  );
  process.exitCode = 1;
}

function render() {
  const licences = [...new Set(packages.map(({ licence }) => licence))].toSorted();
  const rows = licences.map((licence) => {
    const names = packages.filter((each) => each.licence === licence).map(({ name }) => `\`${name}\``);
    return `| ${licence} | ${names.length} | ${[...new Set(names)].join(', ')} |`;
  });
  return [
    '<!-- Generated from package-lock.json by `npm run docs:licences`. -->',
    '# Licences',
    '',
    `Heraut comes under Apache-2.0. It is installed with these ${packages.length} packages; their texts are in \`node_modules\`, or in \`licences\` where a package has none, in the image too; of those in the console, in \`web/dist/licences.txt\`.`,
    'Packages that only tests and the build need are not among them. `npm run sbom` lists them with versions and checksums.',
    '',
    '| licence | packages | names |',
    '| --- | --- | --- |',
    ...rows,
    '',
    `\`${embedded.package}\` is PostgreSQL, compiled with libraries of other projects. Their texts are in \`licences\`:`,
    '',
    '| within it | version | licence |',
    '| --- | --- | --- |',
    ...embedded.programs.map(({ name, version, licence }) => `| ${name} | ${version ?? 'not named'} | ${licence} |`),
    '',
  ].join('\n');
}
