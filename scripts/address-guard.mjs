// `npm run address-guard`: calls every form of an address that callbacks may not use, and prints how many connections were made.
// docs/security.md has the table.
import { Logger } from '@nestjs/common';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { examine, ways } from './address-guard/examine.mjs';
import { readCommandLine } from './command-line.mjs';
import { buildWhenNeeded, installWhenNeeded, projectDirectory, requireNode } from './ready-to-run.mjs';

const log = (/** @type {string} */ line) => console.error(line);
readCommandLine(
  'Usage: npm run address-guard\nCalls every form of an address that callbacks may not use. It takes no options.',
  () => parseArgs({ options: { help: { type: 'boolean' } } }),
);
requireNode();
installWhenNeeded(log);
await buildWhenNeeded(log);
Logger.overrideLogger(false);

const { readSettings } = await built('config/settings.js');
const { Outbound } = await built('outbound/outbound.service.js');
const { HttpWebhookClient } = await built('delivery/webhook-client.http.js');
const { CallbackProbe } = await built('subscriptions/callback-probe.service.js');
const { DocumentationLinkCheck } = await built('channels/documentation-link.service.js');
const { Authorizations } = await built('credentials/authorizations.service.js');
const { verbatim } = await built('credentials/credentials.js');
const { systemClock } = await built('infra/clock.js');
const services = { Outbound, HttpWebhookClient, CallbackProbe, DocumentationLinkCheck, Authorizations };
const program = { readSettings, ...services, verbatim, systemClock };
const { rows, control } = await examine(program);

console.log(`| form | host, or the answers of its name server | ${ways.join(' | ')} |`);
console.log(`| --- | --- |${' --: |'.repeat(ways.length)}`);
for (const { kind, form, counts } of rows) {
  console.log(`| ${kind} | \`${form}\` | ${ways.map((way) => counts[way].refused).join(' | ')} |`);
}
const made = rows.flatMap(({ counts }) => ways.map((way) => counts[way].refused)).reduce((sum, one) => sum + one, 0);
const counted = ways.map((way) => control.counts[way].allowed);
console.log(
  `\nConnections to addresses that may not be used: ${made}. To one that may, in as many calls: ${counted.join(', ')}.`,
);
process.exit(made === 0 && !counted.includes(0) ? 0 : 1);

/** @type {(path: string) => Promise<any>} */
async function built(path) {
  return import(join(projectDirectory, 'dist/src', path));
}
