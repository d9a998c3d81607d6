// `npm run fuzz`: requests that are made of the OpenAPI documents, and answers of receivers that are made of anything.
// docs/fuzzing.md says what is looked for.
import { writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import pg from 'pg';
import { runCommand } from './command.mjs';
import { readOptions } from './fuzz/options.mjs';
import { prepareTarget } from './fuzz/prepare.mjs';
import { fuzzReceivers } from './fuzz/receiver-side.mjs';
import { fuzzServer } from './fuzz/server-side.mjs';
import { startHeraut } from './heraut-process.mjs';
import { makeGuardedDirectory, startPrivateServers } from './private-servers.mjs';
import { freePort } from './private-servers/private-server.mjs';
import { compiled, makeReady } from './ready-to-run.mjs';

const superuser = { clientId: 'fuzz', secret: 'the secret of the superuser that fuzzes' };
const progressEveryMs = 5000;
/** Findings that are printed; `--json` writes all of them. */
const mostTold = 20;
setFlagsFromString('--expose-gc');
/** @type {() => void} */
const collectGarbage = runInNewContext('gc');
const { requests, seed, side, json } = readOptions();

await runCommand(async (run) => {
  await makeReady(run.log);
  run.log(`seed ${seed}`);
  const parts = [];
  if (side !== 'receiver') parts.push(await fuzzTheServer(run));
  if (side !== 'server') parts.push(await fuzzTheClient(run));
  const findings = parts.flatMap((part) => part.findings);
  console.log();
  for (const { line } of parts) console.log(line);
  console.log(`findings ${findings.length}, seed ${seed}`);
  if (json) writeFileSync(json, `${JSON.stringify({ seed, findings }, null, 2)}\n`);
  return findings.length === 0;
});

/** @param {import('./command.mjs').Run} run */
async function fuzzTheServer({ log, onEnd }) {
  log('starting PostgreSQL, RabbitMQ, Redis …');
  const servers = await startPrivateServers(log, { fsync: false });
  onEnd(() => servers.stop());
  const { directory, tellGuardian, remove } = makeGuardedDirectory('fuzz');
  onEnd(remove);
  const { TEST_DATABASE_URL, TEST_AMQP_URL, TEST_REDIS_URL } = servers.environment;
  const port = await freePort();
  const settings = {
    // Accepted notifications are not delivered.
    ROLES: 'api',
    TEST_CALLBACK_AUTH: 'false',
    CALLBACK_NETWORKS: 'any',
    REFUSALS_PER_MINUTE: '1000000',
    HOST: '127.0.0.1',
    PORT: String(port),
    DATABASE_URL: TEST_DATABASE_URL,
    AMQP_URL: TEST_AMQP_URL,
    REDIS_URL: TEST_REDIS_URL,
    SUPERUSER_CLIENT_ID: superuser.clientId,
    SUPERUSER_SECRET: superuser.secret,
    JWT_EXPIRY: '31536000',
    LOG_LEVEL: 'error',
  };
  const heraut = startHeraut({ name: 'heraut', directory, settings, tellGuardian });
  onEnd(() => heraut.stop());
  await heraut.untilReady(`http://127.0.0.1:${port}`);
  const pool = new pg.Pool({ connectionString: TEST_DATABASE_URL, max: 1 });
  pool.on('error', () => {});
  onEnd(() => pool.end());
  const sql = async (/** @type {string} */ text, /** @type {unknown[]} */ values = []) =>
    (await pool.query(text, values)).rows;
  const target = await prepareTarget(port, superuser, sql);
  onEnd(() => target.stop());
  const { findings, answers } = await fuzzServer(target, {
    requests,
    seed,
    onProgress: progress(log, 'requests', requests),
  });
  if (heraut.hasEnded) {
    findings.push({ nr: requests, what: 'the process has ended', request: '', answer: '' });
    tell(findings.at(-1));
  }
  /** @type {Map<number, number>} */
  const total = new Map();
  for (const byStatus of answers.values())
    for (const [status, count] of byStatus) total.set(status, (total.get(status) ?? 0) + count);
  const statuses = [...total].toSorted(([one], [other]) => one - other).map(([status, count]) => `${status}: ${count}`);
  return { findings, line: `requests ${requests} to ${answers.size} operations; answers ${statuses.join(', ')}` };
}

/** @param {import('./command.mjs').Run} run */
async function fuzzTheClient({ log, onEnd }) {
  /** @type {{ HttpWebhookClient: typeof import('../src/delivery/webhook-client.http.js').HttpWebhookClient }} */
  const { HttpWebhookClient } = await compiled('delivery/webhook-client.http.js');
  /** @type {{ readSettings: typeof import('../src/config/settings.js').readSettings }} */
  const { readSettings } = await compiled('config/settings.js');
  /** @type {{ Outbound: typeof import('../src/outbound/outbound.service.js').Outbound }} */
  const { Outbound } = await compiled('outbound/outbound.service.js');
  const client = new HttpWebhookClient(new Outbound(readSettings({ CALLBACK_NETWORKS: 'any' })));
  onEnd(() => client.close());
  const calls = Math.max(100, Math.round(requests / 10));
  const { findings, outcomes, keptBytes } = await fuzzReceivers(client, {
    calls,
    seed,
    collectGarbage,
    onProgress: progress(log, 'calls', calls),
  });
  const counts = [...outcomes]
    .toSorted(([one], [other]) => one.localeCompare(other))
    .map(([outcome, count]) => `${outcome}: ${count}`);
  return {
    findings,
    line: `calls ${calls}; outcomes ${counts.join(', ')}; memory kept ${(keptBytes / 1e6).toFixed(1)} MB`,
  };
}

/**
 * @param {(line: string) => void} log
 * @param {string} what
 * @param {number} all
 */
function progress(log, what, all) {
  let next = performance.now() + progressEveryMs;
  let told = 0;
  return (/** @type {number} */ done, /** @type {readonly import('./fuzz/server-side.mjs').Finding[]} */ findings) => {
    for (; told < Math.min(findings.length, mostTold); told++) tell(findings[told]);
    if (performance.now() < next && done < all) return;
    next = performance.now() + progressEveryMs;
    log(`${done} of ${all} ${what}, findings ${findings.length}`);
  };
}

/** @param {import('./fuzz/server-side.mjs').Finding | undefined} finding */
function tell(finding) {
  if (!finding) return;
  const { nr, what, request, answer } = finding;
  console.log(`finding ${nr}: ${what}\n  request: ${JSON.stringify(request)}\n  answer: ${JSON.stringify(answer)}`);
}
