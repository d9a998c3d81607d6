// `npm run sbom`: the bill of materials of an installed Heraut, as CycloneDX in JSON, on standard output or into the
// file named. npm makes it, of all packages: with its own `--omit dev` it leaves out those that the tests need as well,
// Nest itself among them.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readCommandLine } from './command-line.mjs';
import { embedded } from './licence-texts.mjs';
import { productionPackages } from './production-packages.mjs';
import { projectDirectory } from './ready-to-run.mjs';

/**
 * @typedef {object} Component
 * @property {string} bom-ref
 * @property {string} name
 * @property {string} purl
 * @property {string} version
 * @property {string} scope
 * @property {{ name: string, value: string }[]} properties
 */

const usage = 'Usage: npm run sbom [-- FILE]\nThe bill of materials, on standard output or into that file.';
const { file } = readCommandLine(usage, () => {
  const { values, positionals } = parseArgs({ options: { help: { type: 'boolean' } }, allowPositionals: true });
  return { values: { ...values, file: positionals[0] } };
});

const { status, stdout, stderr } = spawnSync('npm', ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx'], {
  cwd: projectDirectory,
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
});
if (status !== 0) throw new Error(`npm sbom failed:\n${stderr}`);

/** @type {{ metadata: { component: Component }, components: Component[], dependencies: { ref: string, dependsOn: string[] }[] }} */
const bill = JSON.parse(stdout);
const wanted = new Set(productionPackages().map(purlOf));
bill.components = bill.components.filter(({ purl }) => wanted.has(purl));
for (const component of bill.components) {
  // npm marks a package as the first place says where it was found, though another may need it in production.
  component.scope = 'required';
  component.properties = component.properties.filter(({ name }) => name !== 'cdx:npm:package:development');
}
const found = new Set(bill.components.map(({ purl }) => purl));
const missing = [...wanted].filter((purl) => !found.has(purl));
if (missing.length > 0) throw new Error(`npm sbom does not know of ${missing.join(', ')}`);

const root = bill.metadata.component;
// npm takes the name of the directory.
root.name = JSON.parse(readFileSync(join(projectDirectory, 'package.json'), 'utf8')).name;
const refs = new Set([root['bom-ref'], ...bill.components.map((component) => component['bom-ref'])]);
bill.dependencies = bill.dependencies
  .filter(({ ref }) => refs.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) }));

const within = embedded.programs.map(({ name, version, licence, isOwn }) => ({
  'bom-ref': `${embedded.package}#${name}`,
  type: 'library',
  name,
  ...(version && { version }),
  scope: 'required',
  licenses: [{ license: isOwn ? { name } : { id: licence } }],
}));
const around = purlOf({ name: embedded.package, version: embedded.packageVersion });
const aroundRef = bill.components.find(({ purl }) => purl === around)?.['bom-ref'];
if (aroundRef === undefined) throw new Error(`${around} is not installed: see scripts/licence-texts.mjs`);
for (const { ref, dependsOn } of bill.dependencies)
  if (ref === aroundRef) dependsOn.push(...within.map((program) => program['bom-ref']));
const components = [...bill.components, ...within];

const text = `${JSON.stringify({ ...bill, components }, null, 2)}\n`;
if (file) {
  writeFileSync(file, text);
  console.error(`${components.length} packages in ${file}`);
} else {
  process.stdout.write(text);
}

/** @param {{ name: string, version: string }} locked */
function purlOf({ name, version }) {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}
