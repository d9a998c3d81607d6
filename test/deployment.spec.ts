import { describe, expect, it } from 'vitest';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { herautNodeOptions, herautThreads } from '../scripts/node-options.mjs';
import { settingsSchema } from '../src/config/settings.js';
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

  it('passes the settings of alerts, traces, files and retention on to Heraut, each by its own name', () => {
    const optional = /^(ALERT|EMAIL|OTEL)_|RETENTION_DAYS$|^(DEFAULT_FROM_EMAIL|CONFIG_FILE|EXPORT_DIR)$/;
    const names = [
      ...Object.keys(settingsSchema.shape).filter((name) => optional.test(name)),
      'OTEL_EXPORTER_OTLP_HEADERS',
    ];
    expect(names.length).toBeGreaterThan(15);
    for (const [, { environment }] of ours)
      expect(environment).toMatchObject(Object.fromEntries(names.map((name) => [name, `\${${name}:-}`])));
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

  it('runs as a user that is not root, and owns nothing but the data directory', () => {
    expect(image.match(/^USER .*$/gm)).toEqual(['USER node']);
    expect(image.match(/--owner=\w+|--chown=\S+/g)).toEqual(['--owner=node']);
    expect(image.indexOf('USER node')).toBeLessThan(image.indexOf('CMD ["node", '));
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

  it('gives Node as many threads as `npm start` and a supervisor give it', () => {
    expect(image).toMatch(new RegExp(`UV_THREADPOOL_SIZE=${herautThreads}$`, 'm'));
    expect(String(threads)).toBe(herautThreads);
  });

  it('runs no install script of a package', () => {
    const installs = read('Dockerfile').match(/npm (?:ci|install|prune)[^&\n]*/g) ?? [];
    expect(installs.length).toBe(2);
    for (const install of installs) expect(install).toContain('--ignore-scripts');
  });
});
