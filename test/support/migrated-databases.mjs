// Usage: node migrated-databases.mjs SERVER_URL NAME DIRECTORY. Makes, by the compiled program, a migrated database on
// the server and an embedded one. Tests get copies of them: to migrate an empty database and to make its partitions
// takes half a second of a core, and a whole one in the embedded, for every test file. Where TEST_DATABASE_TEMPLATE and
// TEST_CLUSTER are not set, tests begin with empty ones.
import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import pg from 'pg';

const [serverUrl = '', name = '', directory] = process.argv.slice(2);
const compiled = (/** @type {string} */ path) => import(new URL(`../../dist/src/${path}`, import.meta.url).href);
const [{ readSettings }, { Postgres }, { PartitionKeeper }] = await Promise.all(
  ['config/settings.js', 'infra/postgres/postgres.js', 'ledger/partition-keeper.service.js'].map(compiled),
);

const client = new pg.Client({ connectionString: serverUrl });
await client.connect();
await client.query(`CREATE DATABASE ${name}`);
await client.end();

Logger.overrideLogger(false);
const databaseUrl = Object.assign(new URL(serverUrl), { pathname: `/${name}` }).href;
for (const settings of [{ DATABASE_URL: databaseUrl }, { DATA_DIR: directory }]) {
  const postgres = await Postgres.open(readSettings(settings), []);
  await postgres.migrate();
  await new PartitionKeeper(postgres).makeAhead();
  await postgres.close();
}
