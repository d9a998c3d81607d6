// `npm run bench:matching`: what subscriptions cost a process: its start, its memory, a change of one, and a
// notification. docs/performance.md says how.
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { median } from './bench/percentiles.mjs';
import { describeMachine } from './bench/report.mjs';
import { startPrivateServers } from './private-servers.mjs';
import { readCommandLine } from './command-line.mjs';
import { compiled, makeReady } from './ready-to-run.mjs';

const counts = [1, 10, 100, 10_000, 100_000];
const changes = 50;
const matchMs = 100;
const samples = 7;

const channel = 'cases';
const ownValue = (/** @type {number} */ nr) => `https://catalogue.example/api/v1/zaaktypen/${nr}`;

/**
 * Filters of the subscription `n.nr`, as SQL, and notifications to match with them.
 * @type {{ name: string, filters: string, notifications: [string, (count: number) => [string, string][]][] }[]}
 */
const kinds = [
  {
    name: 'a value of its own',
    filters: `json_build_object('zaaktype', '${ownValue(0).slice(0, -1)}' || n.nr)`,
    notifications: [
      [
        'that one wants',
        (count) => [
          ['zaaktype', ownValue(count)],
          ['bronorganisatie', '1'],
        ],
      ],
      [
        'that nobody wants',
        () => [
          ['zaaktype', ownValue(0)],
          ['bronorganisatie', '1'],
        ],
      ],
    ],
  },
  {
    name: 'a shared value and one of its own',
    filters: `json_build_object('bronorganisatie', '1', 'zaaktype', '${ownValue(0).slice(0, -1)}' || n.nr)`,
    notifications: [
      [
        'that one wants',
        (count) => [
          ['zaaktype', ownValue(count)],
          ['bronorganisatie', '1'],
        ],
      ],
      ['that lacks a name, and nobody wants', () => [['bronorganisatie', '2']]],
    ],
  },
];

const log = (/** @type {string} */ line) => console.error(line);

readCommandLine('Usage: npm run bench:matching\nMeasures what subscriptions cost a process. It takes no options.', () =>
  parseArgs({ options: { help: { type: 'boolean' } } }),
);
if (!globalThis.gc) throw new Error('Run it as `npm run bench:matching`: it needs node --expose-gc.');
await makeReady(log);
const servers = await startPrivateServers(log);
try {
  console.log(`${describeMachine(tmpdir())}, ${new Date().toISOString()}`);
  await measure(servers.environment.TEST_DATABASE_URL);
} finally {
  await servers.stop();
}

async function measure(/** @type {string} */ databaseUrl) {
  /** @type {{ Postgres: typeof import('../src/infra/postgres/postgres.js').Postgres }} */
  const { Postgres } = await compiled('infra/postgres/postgres.js');
  /** @type {{ readSettings: typeof import('../src/config/settings.js').readSettings }} */
  const { readSettings } = await compiled('config/settings.js');
  /** @type {{ Catalogue: typeof import('../src/catalogue/catalogue.service.js').Catalogue }} */
  const { Catalogue } = await compiled('catalogue/catalogue.service.js');
  /** @type {typeof import('../src/subscriptions/subscription-directory.service.js')} */
  const { SubscriptionDirectory } = await compiled('subscriptions/subscription-directory.service.js');
  /** @type {typeof import('../src/secrets/secret-cipher.service.js')} */
  const { SecretCipher } = await compiled('secrets/secret-cipher.service.js');
  const cipher = new SecretCipher(new Map());
  const postgres = await Postgres.open(readSettings({ DATABASE_URL: databaseUrl }), []);
  await postgres.migrate();

  for (const { name, filters, notifications } of kinds) {
    for (const count of counts) {
      await postgres.dataSource.query('TRUNCATE subscription CASCADE');
      await postgres.dataSource.query(
        `INSERT INTO subscription (id, owner_client_id, callback_url, auth, channels, version)
         SELECT gen_random_uuid(), 'zaaksysteem', 'https://receiver-' || n.nr || '.example/api/v1/callbacks', 'Bearer ' || md5(n.nr::text),
         json_build_array(json_build_object('channel', '${channel}', 'filters', ${filters})), 1
         FROM generate_series(1, $1::int) AS n (nr)`,
        [count],
      );
      await postgres.dataSource.query('VACUUM ANALYZE subscription');
      const catalogue = new Catalogue(postgres);
      const directory = new SubscriptionDirectory(catalogue, postgres, cipher);
      const bytesBefore = bytesInUse();
      const startedAt = performance.now();
      await catalogue.refresh();
      const startMs = performance.now() - startedAt;
      const bytes = (bytesInUse() - bytesBefore) / count;
      const changeMs = await measureChange(catalogue, String(directory.list()[count >> 1]?.id));
      console.log(
        `${name}: ${count} subscriptions: start ${startMs.toFixed(0)} ms, ${count < 1000 ? '' : `${bytes.toFixed(0)} bytes each, `}change of one ${changeMs.toFixed(1)} ms`,
      );
      for (const [what, characteristicsOf] of notifications) {
        const characteristics = new Map(characteristicsOf(count));
        const micros = measureMatch(() => directory.match(channel, characteristics));
        const { length } = directory.match(channel, characteristics);
        console.log(`  a notification ${what}: ${micros.toFixed(2)} µs, found ${length}`);
      }
    }
  }
  await postgres.close();
}

/**
 * Until it is committed and in memory.
 * @param {import('../src/catalogue/catalogue.service.js').Catalogue} catalogue
 * @param {string} id
 */
async function measureChange(catalogue, id) {
  const times = [];
  for (let nr = 0; nr < changes; nr++) {
    const startedAt = performance.now();
    await catalogue.change((manager, version) =>
      manager.query('UPDATE subscription SET version = $1, auth = $2 WHERE id = $3', [version, `Bearer ${nr}`, id]),
    );
    times.push(performance.now() - startedAt);
  }
  return median(times);
}

/** Microseconds of one call. */
function measureMatch(/** @type {() => unknown} */ match) {
  return median(
    Array.from({ length: samples }, () => {
      const startedAt = performance.now();
      let calls = 0;
      let elapsed = 0;
      for (let together = 1; elapsed < matchMs; together = Math.min(together * 2, 4096)) {
        for (let nr = 0; nr < together; nr++) match();
        calls += together;
        elapsed = performance.now() - startedAt;
      }
      return (elapsed * 1000) / calls;
    }),
  );
}

function bytesInUse() {
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
