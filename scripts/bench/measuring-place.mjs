// Everything that is measured, and everything that measures it: an installation, a receiver, a load generator.
import pg from 'pg';
import { makeGuardedDirectory } from '../private-servers.mjs';
import { makeReady } from '../ready-to-run.mjs';
import { startChild } from './child.mjs';
import { startInstallation } from './installation.mjs';
import { filters } from './notification.mjs';
import { requireProc } from './processes.mjs';
import { describeMachine } from './report.mjs';
import { Runs } from './runs.mjs';
import { Measurements } from './scenarios.mjs';

/**
 * @param {import('../command.mjs').Run} run
 * @param {object} how
 * @param {boolean} how.embedded
 * @param {string} [how.processes] as the setting `PROCESSES`
 * @param {string} how.guarantee of the subscriptions
 * @param {string} [how.cpuProf] directory for CPU profiles
 * @param {(postgres: import('../private-servers.mjs').Controls) => Promise<void>} [how.prepareDatabase] before Heraut
 *   starts
 */
export async function startMeasuringPlace(
  { log, onEnd },
  { embedded, processes, guarantee, cpuProf, prepareDatabase },
) {
  requireProc();
  await makeReady(log);

  const { directory, tellGuardian, remove } = makeGuardedDirectory('bench');
  onEnd(remove);
  const machine = describeMachine(directory);
  const installation = await startInstallation({
    embedded,
    processes,
    guarantee,
    cpuProf,
    prepareDatabase,
    directory,
    filters,
    onStarted: onEnd,
    tellGuardian,
    log,
  });
  const receiver = await startChild('receiver.mjs');
  onEnd(receiver.stop);
  const load = await startChild('load.mjs');
  onEnd(load.stop);
  const receiverUrl = await receiver.call('listen', undefined);
  const runs = new Runs();
  const measurements = new Measurements({ runs, installation, receiver, load, receiverUrl, log });
  return { directory, machine, installation, measurements };
}

/**
 * Receivers in trouble.
 * @param {import('../command.mjs').Run} run
 */
export async function startOddReceivers({ onEnd }) {
  const odd = await startChild('odd-receivers.mjs');
  onEnd(() => {
    process.kill(odd.pid, 'SIGCONT'); // a frozen process does not end
    return odd.stop();
  });
  return odd;
}

/**
 * After the last measurement.
 * @param {Awaited<ReturnType<typeof startMeasuringPlace>>} place
 * @param {(line: string) => void} log is told what Heraut logged as a warning or worse
 * @returns {Promise<string[]>} faults of the deliveries, in sentences
 */
export async function finishMeasuring({ installation, measurements }, log) {
  if (installation.databaseUrl) await untilSettled(installation.databaseUrl, measurements.runs);
  const wrong = await measurements.runs.findWrong();
  await installation.stop(); // its logs are complete then
  for (const { level, event, times, first } of await installation.troubles())
    log(`logged ${times} times: ${level} ${event}, first ${first}`);
  return wrong;
}

/**
 * @param {string} databaseUrl
 * @param {Runs} runs
 */
async function untilSettled(databaseUrl, runs) {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await runs.untilSettled({ query: async (text, values) => (await client.query(text, values)).rows });
  } finally {
    await client.end();
  }
}
