import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { arrows } from '../oxlint.config.mjs';

const project = fileURLToPath(new URL('..', import.meta.url));
const rootFile = readdirSync(join(project, 'src')).find((name) => name.endsWith('.ts')) ?? '';
const folders = Object.keys(arrows);

interface Finding {
  rule: string;
  file: string;
  message: string;
}

describe('the arrows between capabilities', () => {
  it('name every folder of src, and no other', () => {
    const present = readdirSync(join(project, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.toSorted()).toEqual(present.map((entry) => entry.name).toSorted());
  });

  it('lead to folders that exist', () => {
    expect(folders).toEqual(expect.arrayContaining(Object.values(arrows).flat()));
  });

  it('are each used: a permission that nothing needs hides the next wrong import', () => {
    for (const folder of folders) expect([folder, importedBy(folder)]).toEqual([folder, arrows[folder]!.toSorted()]);
  });

  it('form no circle', () => {
    for (const folder of folders) expect(reachable(folder)).not.toContain(folder);
  });
});

describe('a package that is loaded late', () => {
  // In the bundles of `npm run build` a CommonJS package that is imported at run time has its default and nothing else.
  it('is asked for its default export alone', () => {
    const files = readdirSync(join(project, 'src'), { recursive: true, encoding: 'utf8' });
    const imports = files
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.spec.ts'))
      .flatMap((name) => readFileSync(join(project, 'src', name), 'utf8').match(/.*\bimport\('(?!\.|node:).*/g) ?? []);
    expect(imports).not.toEqual([]);
    for (const line of imports) expect(line).toMatch(/const \{ default: \w+ \} = await import\('/);
  });
});

describe('OpenTelemetry', () => {
  it('is imported by its adapter alone, which is loaded only where it is asked for', () => {
    const files = readdirSync(join(project, 'src'), { recursive: true, encoding: 'utf8' });
    const imports = files
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.opentelemetry.ts'))
      .flatMap((name) => {
        const found = readFileSync(join(project, 'src', name), 'utf8').matchAll(
          /(\bimport\(|\bimport |\bfrom )'(?:@opentelemetry\/[^']*|[^']*\.opentelemetry\.js)'/g,
        );
        return [...found].map(([text]) => `${name}: ${text}`);
      });
    expect(imports).toEqual(["telemetry/start-tracing.ts: import('./otlp-tracer.opentelemetry.js'"]);
  });
});

describe('lint', () => {
  let copy: string;

  beforeAll(() => {
    copy = mkdtempSync(join(tmpdir(), 'heraut-arrows-'));
    for (const name of ['src', 'migrations', 'package.json', 'tsconfig.json', 'oxlint.config.mjs']) {
      cpSync(join(project, name), join(copy, name), { recursive: true });
    }
    symlinkSync(join(project, 'node_modules'), join(copy, 'node_modules'));
    // The rules about the architecture need no types, and to find those out takes most of the time.
    const untyped = `import config from './oxlint.config.mjs';
      export default { ...config, options: { ...config.options, typeAware: false, typeCheck: false } };`;
    writeFileSync(join(copy, 'untyped.config.mjs'), untyped);
  });

  afterAll(() => rmSync(copy, { recursive: true }));

  it('finds no arrow backwards and no circle in the project as it is', () => {
    expect(lint('src', 'migrations')).toEqual([]);
  });

  it('refuses every arrow that is not on the list, and only those', () => {
    const files = folders.map((folder) => {
      const lines = folders.map((other) => `export * as ${camelCase(other)} from '../${other}/anything.js';\n`);
      return { name: `src/${folder}/zz-planted.ts`, text: lines.join('') };
    });
    const findings = withFiles(files, () => lint(...files.map((file) => file.name)));
    const found = findings.map(({ file, message }) => `${file}: ${message.split("'")[1]}`);
    const expected = folders.flatMap((folder) =>
      folders
        .filter((other) => other !== folder && !arrows[folder]?.includes(other))
        .map((other) => `src/${folder}/zz-planted.ts: ../${other}/anything.js`),
    );
    expect(found.toSorted()).toEqual(expected.toSorted());
  });

  it('refuses an arrow backwards that is only a type, comes from deeper down, or from a spec', () => {
    const planted = [
      ['src/ledger/zz-type.ts', "import type { X } from '../delivery/x.js';\nexport type Y = X;\n"],
      ['src/infra/postgres/zz-deep.ts', "export { x } from '../../ledger/x.js';\n"],
      ['src/queue/zz-late.ts', "export const late = () => import('../delivery/x.js');\n"],
      ['src/config/zz.spec.ts', "export { x } from '../queue/x.js';\n"],
      ['src/ledger/zz-dot.ts', "export { x } from './../delivery/x.js';\n"],
      ['src/ledger/zz-around.ts', "export { x } from '../../src/delivery/x.js';\n"],
      ['src/ledger/zz-sideways.ts', "export { x } from './nothing/../../delivery/x.js';\n"],
      ['src/channels/zz-root.ts', `export * from '../${rootFile.replace('.ts', '.js')}';\n`],
      ['src/channels/zz-test.ts', "export { eventually } from '../../test/support/eventually.js';\n"],
      ['src/channels/zz-barrel.ts', "export { x } from './index.js';\n"],
    ].map(([name = '', text = '']) => ({ name, text }));
    const findings = withFiles(planted, () => lint(...planted.map((file) => file.name)));
    expect(findings.map(({ file }) => file).toSorted()).toEqual(planted.map(({ name }) => name).toSorted());
    expect(new Set(findings.map(({ rule }) => rule))).toEqual(new Set(['eslint(no-restricted-imports)']));
  });

  it('refuses a circle inside one folder, even of types', () => {
    const planted = [
      { name: 'src/ledger/zz-one.ts', text: "import type { Two } from './zz-two.js';\nexport type One = Two | 1;\n" },
      {
        name: 'src/ledger/zz-two.ts',
        text: "import type { One } from './zz-one.js';\nexport interface Two { one: One }\n",
      },
    ];
    const findings = withFiles(planted, () => lint(...planted.map((file) => file.name)));
    expect(findings.map(({ rule, file }) => `${file}: ${rule}`).toSorted()).toEqual([
      'src/ledger/zz-one.ts: import(no-cycle)',
      'src/ledger/zz-two.ts: import(no-cycle)',
    ]);
  });

  /** The findings of the two rules about the architecture; `npm run lint` checks the other rules. */
  function lint(...paths: string[]): Finding[] {
    const program = join(project, 'node_modules/oxlint/bin/oxlint');
    const { stdout } = spawnSync(process.execPath, [program, '-c', 'untyped.config.mjs', '--format=json', ...paths], {
      cwd: copy,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    });
    const result = JSON.parse(stdout) as {
      number_of_files: number;
      diagnostics: { code: string; filename: string; message: string }[];
    };
    expect(result.number_of_files).toBeGreaterThanOrEqual(paths.length);
    return result.diagnostics
      .map(({ code, filename, message }) => ({ rule: code, file: filename, message }))
      .filter(({ rule }) => rule === 'eslint(no-restricted-imports)' || rule === 'import(no-cycle)');
  }

  function withFiles<T>(files: { name: string; text: string }[], look: () => T): T {
    for (const { name, text } of files) writeFileSync(join(copy, name), text);
    try {
      return look();
    } finally {
      for (const { name } of files) rmSync(join(copy, name));
    }
  }
});

function reachable(from: string): Set<string> {
  const seen = new Set<string>();
  const open = [...(arrows[from] ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    open.push(...(arrows[next] ?? []));
  }
  return seen;
}

function camelCase(name: string): string {
  return name.replaceAll(/-(.)/g, (_match, letter: string) => letter.toUpperCase());
}

/** The other folders of src that the program files of this one import from. */
function importedBy(folder: string): string[] {
  const directory = join(project, 'src', folder);
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !name.endsWith('.spec.ts'),
  );
  const imported = files.flatMap((name) => {
    const imports = readFileSync(join(directory, name), 'utf8').matchAll(/from '((?:\.\.\/)+)([^/']+)\//g);
    // As many steps up as the file lies deep lead to src.
    const depth = name.split('/').length;
    return [...imports].filter(([, up]) => up!.length / 3 === depth).map(([, , other]) => other!);
  });
  return [...new Set(imported)].toSorted();
}
