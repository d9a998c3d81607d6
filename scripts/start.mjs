// `npm start`: installs and builds where needed, then runs Heraut. On the embedded default it also starts a receiver
// and prints a link to the console, and the commands for a first delivery.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { firstSteps, wayIntoConsole } from './first-steps.mjs';
import { isReady } from './heraut-process.mjs';
import { herautNodeOptions, herautThreads } from './node-options.mjs';
import { urlOf } from './own-url.mjs';
import { accepts, freePort } from './private-servers/private-server.mjs';
import { makeReady, projectDirectory } from './ready-to-run.mjs';
import { startReceiver } from './receiver.mjs';
import { spawnInFront } from './spawn-in-front.mjs';

const log = (/** @type {string} */ line) => console.error(line);
try {
  await makeReady(log);
  await run();
} catch (error) {
  log(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

async function run() {
  const {
    HOST,
    PORT,
    ADMIN_HOST,
    ADMIN_PORT,
    PROCESSES,
    ROLES,
    DATABASE_URL,
    DATA_DIR,
    SUPERUSER_CLIENT_ID,
    SUPERUSER_SECRET,
    UV_THREADPOOL_SIZE,
  } = process.env;
  const port = PORT === '0' ? await freePort() : Number(PORT || 8000);
  if (await accepts(port)) throw new Error(`Something listens on port ${port} already. Set PORT to another one.`);
  const url = urlOf(HOST, port);
  const adminPort = ADMIN_PORT === '0' ? await freePort() : Number(ADMIN_PORT || 0);
  const adminUrl = adminPort ? urlOf(ADMIN_HOST || HOST, adminPort) : url;
  const isDemo = !DATABASE_URL;
  const receiver = isDemo ? await startReceiver(8001, show) : undefined;
  // With what Node itself was told for this script, which counts more than what comes before it.
  const words = [
    ...herautNodeOptions,
    ...process.execArgv,
    join(projectDirectory, 'dist/main.js'),
    ...process.argv.slice(2),
  ];
  const server = spawnInFront(words, {
    ...process.env,
    PORT: String(port),
    ADMIN_PORT: adminPort ? String(adminPort) : '',
    // On real servers it uses every core; the embedded database takes one process, whatever this says.
    PROCESSES: PROCESSES || 'auto',
    UV_THREADPOOL_SIZE: UV_THREADPOOL_SIZE || herautThreads,
  });
  let hasEnded = false;
  server.once('exit', () => {
    hasEnded = true;
    receiver?.close();
  });

  while (!hasEnded && !(await isReady(url))) await sleep(100);
  if (hasEnded) return;
  // Only the role `api` serves those; on the embedded database it is one of all.
  if (ROLES && !ROLES.split(',').some((role) => role.trim() === 'api')) {
    show(`Heraut listens on ${url}`);
    return;
  }
  show(`Heraut listens on ${url}\nAPI documentation: ${adminUrl}/docs and ${url}/api/v1/schema/`);
  if (!receiver) {
    show(`The console: ${adminUrl}/console/`);
    return;
  }
  show(`A small receiver listens on ${receiver.url}; what it gets is shown here.`);
  const clientId = SUPERUSER_CLIENT_ID || 'heraut';
  // The embedded database makes a secret at its first start when none is configured.
  const secret = SUPERUSER_SECRET || readFileSync(join(DATA_DIR || './data', 'superuser-secret'), 'utf8').trim();
  const isSecretConfigured = Boolean(SUPERUSER_SECRET);
  const commands = await firstSteps({ url, adminUrl, clientId, secret, isSecretConfigured, receiverUrl: receiver.url });
  // Last, where it is seen.
  show(`${commands}\n\n${await wayIntoConsole({ adminUrl, clientId, secret, isSecretConfigured, env: process.env })}`);
}

/** @param {string} text */
function show(text) {
  console.log(`\n${text}\n`);
}
