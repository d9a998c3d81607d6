import { describe, expect, it } from 'vitest';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { embedded, licenceTextOf } from '../scripts/licence-texts.mjs';
import { productionPackages } from '../scripts/production-packages.mjs';

const project = fileURLToPath(new URL('..', import.meta.url));

describe('the licences of what Heraut is installed with', () => {
  const packages = productionPackages();

  it('go along with their texts, also where a package has none of its own', () => {
    const installed = packages.filter(({ path }) => existsSync(join(project, path)));
    expect(installed.length).toBeGreaterThan(200);
    const without = installed.filter(({ name, path }) => !licenceTextOf(name, join(project, path))?.trim());
    expect(without).toEqual([]);
  });

  it('go along with the files of the console', () => {
    const texts = readFileSync(join(project, 'web/dist/licences.txt'), 'utf8').split('\n\n----\n\n');
    expect(texts.length).toBeGreaterThan(20);
    expect(texts.filter((text) => !/permi|grant/i.test(text)).map((text) => text.split('\n', 1)[0])).toEqual([]);
  });

  it('are known of the programs within the embedded database, in the version that is installed', () => {
    const { version, path } = packages.find(({ name }) => name === embedded.package)!;
    expect(version).toBe(embedded.packageVersion);
    const program = readFileSync(join(project, path, 'dist/pglite.wasm'));
    const [postgres] = embedded.programs;
    expect(program.includes(`${postgres!.name} ${postgres!.version} (`)).toBe(true);
    for (const { text } of embedded.programs) expect(existsSync(join(project, 'licences', text))).toBe(true);
  });

  it('are not asked for of the compiler, which only builds', () => {
    expect(packages.filter(({ name }) => /^(@typescript\/.*|typescript)$/.test(name)).map(({ name }) => name)).toEqual(
      [],
    );
  });
});
