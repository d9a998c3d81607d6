import { describe, expect, it } from 'vitest';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { herautNodeOptions, herautThreads } from '../scripts/node-options.mjs';
import { readSettings, settingsSchema } from '../src/config/settings.js';
import { threads } from '../src/supervision/process-plan.js';

const read = (name: string) => readFileSync(fileURLToPath(new URL(`../docker/${name}`, import.meta.url)), 'utf8');

interface Service {
  image: string;
  command?: string[];
  environment?: Record<string, unknown>;
  ports?: string[];
}

describe('docker/compose.yml', () => {
  const { services } = parse(read('compose.yml'), { merge: true }) as { services: Record<string, Service> };
  const ours = Object.entries(services).filter(([, { image }]) => image === 'heraut');

  it('gives each container of Heraut a read-only file system, no capability and no new privileges', () => {
    expect(ours.map(([name]) => name)).toEqual(['api', 'worker', 'dispatcher']);
    for (const [, service] of ours) {
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
      expect(service).not.toHaveProperty('cap_add');
      expect(service).not.toHaveProperty('privileged');
    }
  });

  it('passes every setting on to Heraut by its own name, but for those that the containers decide', () => {
    const given = ['DATABASE_URL', 'AMQP_URL', 'REDIS_URL', 'ROLES'];
    // As the image has them; the directory is that of the embedded database.
    const ofImage = ['HOST', 'PORT', 'DATA_DIR', 'UV_THREADPOOL_SIZE'];
    const others = Object.keys(settingsSchema.shape).filter((name) => ![...given, ...ofImage].includes(name));
    const names = [...others, 'OTEL_EXPORTER_OTLP_HEADERS', 'NODE_EXTRA_CA_CERTS'];
    for (const [, { environment = {} }] of ours) {
      expect(names.filter((name) => !String(environment[name]).startsWith(`\${${name}:`))).toEqual([]);
      expect(Object.keys(environment).toSorted()).toEqual([...names, ...given].toSorted());
    }
  });

  it('gives Heraut settings that it takes where only the demanded variables are set', () => {
    const asCompose = (value: unknown) =>
      String(value)
        .replaceAll(/\$\{\w+:\?[^}]*\}/g, 'demanded')
        .replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1');
    const settings = ours.map(([role, { environment = {} }]) => [
      role,
      readSettings(Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, asCompose(value)]))),
    ]);
    expect(Object.fromEntries(settings)).toMatchObject({
      api: { ROLES: ['api'], PROCESSES: 'auto', RETENTION_DAYS: 30 },
      worker: { ROLES: ['worker'], DATABASE_URL: 'postgres://heraut:demanded@postgres:5432/heraut' },
      dispatcher: { ROLES: ['dispatcher'], SUPERUSER_SECRET: 'demanded' },
    });
  });

  it('has an example of the file with its variables, in which each that it demands is empty, and which Git does not take', () => {
    const variables = [...read('env.example').matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]);
    const demanded = [...new Set([...read('compose.yml').matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name))];
    expect(demanded.length).toBe(4);
    expect(Object.fromEntries(variables)).toMatchObject(Object.fromEntries(demanded.map((name) => [name, ''])));
    expect(readFileSync(new URL('../.gitignore', import.meta.url), 'utf8')).toMatch(/^docker\/\.env$/m);
  });

  it('has Prometheus ask each role by its name, since a container that has ended has no address', () => {
    const { scrape_configs: jobs } = parse(read('prometheus/prometheus.yml')) as {
      scrape_configs: { job_name: string; static_configs?: { targets: string[] }[] }[];
    };
    const named = jobs.find(({ job_name: name }) => name === 'heraut-roles')?.static_configs?.[0]?.targets;
    expect(named).toEqual(ours.map(([name]) => `${name}:8000`));
  });

  it('has Redis refuse when it is full, and says how large it may be', () => {
    const { command = [] } = services.redis!;
    const option = (name: string) => command[command.indexOf(name) + 1];
    // Without the first one, Redis keeps to no policy.
    expect(command).toContain('--maxmemory');
    expect(option('--maxmemory')).toMatch(/^\$\{REDIS_MAXMEMORY:-\d+gb\}$/);
    expect(option('--maxmemory-policy')).toBe('noeviction');
  });

  it('has no secret, and no ports but those of the api and of the dashboards, on this machine alone', () => {
    const variables = Object.values(services).flatMap(({ environment = {} }) => Object.entries(environment));
    const secrets = variables.filter(([name]) => /SECRET$|PASS|_URL$|AUTH$/.test(name));
    expect(secrets.length).toBeGreaterThan(5);
    // Compose wants them, or they are optional and empty.
    expect(secrets.filter(([, value]) => !/\$\{\w+:(\?|-\})/.test(String(value)))).toEqual([]);
    expect(Object.values(services).flatMap(({ ports = [] }) => ports)).toEqual([
      '${HERAUT_LISTEN:-127.0.0.1:8000}:8000',
      '${GRAFANA_LISTEN:-127.0.0.1:3000}:3000',
    ]);
  });
});

describe('docker/Dockerfile', () => {
  const [, image = ''] = read('Dockerfile')
    .split(/^FROM .*$/m)
    .slice(1);

  it('runs as a user that is not root, by its number, and owns nothing but the data directory', () => {
    expect(image.match(/^USER .*$/gm)).toEqual(['USER 1000:1000']);
    expect(image.match(/--owner=\w+|--chown=\S+/g)).toEqual(['--owner=node']);
    expect(image.indexOf('USER 1000')).toBeLessThan(image.indexOf('CMD ["node", '));
  });

  it('lets its user read all that it copies, whatever modes the files of the clone have', () => {
    const copies = image.match(/^COPY .*$/gm) ?? [];
    expect(copies.filter((copy) => !copy.startsWith('COPY --from=build '))).toEqual([]);
    const copied = copies.flatMap((copy) => copy.match(/(?<=\/heraut\/)\S+/g) ?? []);
    // npm gives the packages that it installs modes of its own.
    const fromClone = copied.filter((path) => path !== 'node_modules');
    const readable = /^RUN chmod -R a\+rX (.*)$/m.exec(read('Dockerfile'))?.[1]?.split(' ') ?? [];
    expect(fromClone.length).toBeGreaterThan(3);
    expect(readable.toSorted()).toEqual(fromClone.toSorted());
  });

  it('gives Node the options that `npm start` and the README give it', () => {
    expect(image).toContain(
      `CMD ${JSON.stringify(['node', ...herautNodeOptions, 'dist/main.js']).replaceAll(',', ', ')}`,
    );
    const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
    const started = readme.match(/^ROLES=.* node .*$/gm) ?? [];
    expect(started.length).toBe(3);
    for (const line of started) expect(line).toContain(`node ${herautNodeOptions.join(' ')} dist/main.js`);
  });

  it('gives Node as many threads as `npm start`, a supervisor and the README give it', () => {
    const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
    expect(readme).toMatch(new RegExp(`^export DATABASE_URL=.* UV_THREADPOOL_SIZE=${herautThreads}$`, 'm'));
    expect(image).toMatch(new RegExp(`UV_THREADPOOL_SIZE=${herautThreads}$`, 'm'));
    expect(String(threads)).toBe(herautThreads);
  });

  it('leaves the compiler out, which no program of Heraut loads', () => {
    expect(read('Dockerfile')).toMatch(
      /npm prune .*\\\n *&& rm -rf node_modules\/typescript node_modules\/@typescript /,
    );
    const bundle = new URL('../dist/bundle/', import.meta.url);
    const texts = readdirSync(bundle)
      .filter((name) => name.endsWith('.js'))
      .map((name) => readFileSync(new URL(name, bundle), 'utf8'));
    expect(texts.some((text) => text.includes('"@electric-sql/pglite"'))).toBe(true);
    expect(texts.filter((text) => /["']typescript["']/.test(text))).toEqual([]);
  });

  it('says in its labels of which version and revision it is', () => {
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    expect(image).toMatch(/^ARG REVISION$/m);
    const label = `LABEL org.opencontainers.image.version="${version}" org.opencontainers.image.revision="$REVISION"`;
    expect(image).toContain(label);
    expect(read('compose.yml')).toContain("args: { REVISION: '${REVISION:-}' }");
  });

  it('runs no install script of a package', () => {
    const installs = read('Dockerfile').match(/npm (?:ci|install|prune)[^&\n]*/g) ?? [];
    expect(installs.length).toBe(2);
    for (const install of installs) expect(install).toContain('--ignore-scripts');
  });
});
