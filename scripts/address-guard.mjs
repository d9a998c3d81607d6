// `npm run address-guard`: calls every form of an address that callbacks may not use, and prints how many connections
// were made. docs/security.md says of which kinds they are.
import { Logger } from '@nestjs/common';
import { parseArgs } from 'node:util';
import { examine, ways } from './address-guard/examine.mjs';
import { readCommandLine } from './command-line.mjs';
import { compiled, makeReady } from './ready-to-run.mjs';

const log = (/** @type {string} */ line) => console.error(line);
readCommandLine(
  'Usage: npm run address-guard\nCalls every form of an address that callbacks may not use. It takes no options.',
  () => parseArgs({ options: { help: { type: 'boolean' } } }),
);
await makeReady(log);
Logger.overrideLogger(false);

const { readSettings } = await compiled('config/settings.js');
const { Outbound } = await compiled('outbound/outbound.service.js');
const { HttpWebhookClient } = await compiled('delivery/webhook-client.http.js');
const { CallbackProof } = await compiled('subscriptions/callback-proof.service.js');
const { DocumentationLinkCheck } = await compiled('channels/documentation-link.service.js');
const { Authorizations } = await compiled('credentials/authorizations.service.js');
const { verbatim } = await compiled('credentials/credentials.js');
const { systemClock } = await compiled('infra/clock.js');
const services = { Outbound, HttpWebhookClient, CallbackProof, DocumentationLinkCheck, Authorizations };
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
