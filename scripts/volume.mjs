// `npm run volume`: what a month of data and a bad day cost, against an empty ledger. docs/performance.md says how.
import { writeFileSync } from 'node:fs';
import { finishMeasuring, startMeasuringPlace, startOddReceivers } from './bench/measuring-place.mjs';
import { channels } from './bench/notification.mjs';
import { runCommand } from './command.mjs';
import { compare, requireDisk } from './volume/compare.mjs';
import { Database } from './volume/database.mjs';
import { readOptions } from './volume/options.mjs';
import { missedGoals, toJson, toTable } from './volume/report.mjs';
import { measureSearches } from './volume/searches.mjs';
import { logStatements, StatementLog } from './volume/statement-log.mjs';

const warmUpSeconds = 10;
/** As `npm start` on servers. */
const processes = 'auto';

await runCommand(async ({ log, onEnd }) => {
  const { cases, share, seconds, pairs, json } = readOptions();
  /** @type {Database | undefined} */
  let database;
  const place = await startMeasuringPlace(
    { log, onEnd },
    {
      embedded: false,
      processes,
      guarantee: 'at-least-once',
      prepareDatabase: async (postgres) => {
        // It is not waited for when the command ends early: the end of the server ends what it does.
        database = new Database(postgres.url);
        await logStatements(database, () => postgres.restart());
      },
    },
  );
  if (!database) throw new Error('There is no database to fill.');
  const { machine, measurements } = place;
  await measurements.subscribe();
  // Receivers that are not the closed loop's have it in several cases.
  await measurements.installation.createChannel(channels.others);
  await measurements.warmUp(warmUpSeconds);
  await measurements.runs.untilSettled(database);
  const statementLog = new StatementLog(database);
  const parts = {
    database,
    statementLog,
    measurements,
    startOddReceivers: () => startOddReceivers({ log, onEnd }),
    log,
  };
  /** @type {import('./volume/compare.mjs').Comparison[]} */
  const comparisons = [];
  /** @type {import('./volume/searches.mjs').Searched | undefined} */
  let searched;
  for (const each of cases) {
    const rows = Math.ceil(each.rows * share);
    requireDisk(rows);
    if (each.isSearched) searched = await measureSearches(each, rows, parts);
    else comparisons.push(await compare(each, { rows, pairs, seconds }, parts));
  }
  const wrong = await finishMeasuring(place, log);
  for (const { name, once } of comparisons)
    if (once?.failure) wrong.push(`${name}: a round of the dispatcher failed: ${once.failure}`);
  await database.close();

  const results = { machine, date: new Date().toISOString(), processes, comparisons, searched };
  console.log(`\n${toTable(results)}\n`);
  for (const sentence of missedGoals(results)) console.log(`goal missed: ${sentence}`);
  for (const sentence of wrong) console.log(`FAILED: ${sentence}`);
  if (json) writeFileSync(json, `${JSON.stringify(toJson(results), null, 2)}\n`);
  return wrong.length === 0;
});
