// `npm run bench:signing`: the CPU of a signed delivery beside that of one that is not. docs/performance.md says how.
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { startChild } from './bench/child.mjs';
import { median } from './bench/percentiles.mjs';
import { describeMachine, inColumns } from './bench/report.mjs';
import { runCommand } from './command.mjs';
import { readCommandLine } from './command-line.mjs';
import { compiled, makeReady } from './ready-to-run.mjs';

const rounds = 40;
const callsPerRound = 2000;
const together = 64;
/** A notification as `npm run bench` has it, and the largest body that Standard Webhooks advise. */
const bodyBytes = [1024, 20_000];
/** Of a delivery that is signed once with `v1`, over one that is not signed. */
const goalMicros = 15;

/** The keys of a subscription, by their schemes. @type {Record<string, import('../src/signing/signing-key.js').SigningScheme[]>} */
const kinds = { unsigned: [], v1: ['v1'], 'v1, rotated': ['v1', 'v1'], v1a: ['v1a'] };

readCommandLine(
  'Usage: npm run bench:signing\nMeasures the CPU of a signed delivery beside that of one that is not. It takes no options.',
  () => parseArgs({ options: { help: { type: 'boolean' } } }),
);
await runCommand(async ({ log, onEnd }) => {
  await makeReady(log);
  const receiver = await startChild('receiver.mjs');
  onEnd(receiver.stop);
  const { sender, subscriptionWith, close } = await senderTo(await receiver.call('listen', undefined));
  onEnd(close);
  console.log(`${describeMachine(tmpdir())}, ${new Date().toISOString()}`);
  let isGoalMet = true;
  for (const bytes of bodyBytes) {
    log(`bodies of ${bytes} bytes …`);
    const subscriptions = Object.values(kinds).map(subscriptionWith);
    /** @type {number[][]} */
    const micros = subscriptions.map(() => []);
    // In turn, so that what else the machine does meets all kinds alike. The first rounds warm up.
    for (let round = -4; round < rounds; round++) {
      for (const [kind, subscription] of subscriptions.entries()) {
        const each = await measure(sender, subscription, Buffer.alloc(bytes, '{'));
        if (round >= 0) micros[kind]?.push(each);
      }
    }
    const unsigned = median(micros[0]);
    const rows = Object.keys(kinds).map((name, kind) => {
      const each = median(micros[kind]);
      return [name, `${each.toFixed(1)} µs`, kind === 0 ? '' : `+ ${(each - unsigned).toFixed(1)} µs`];
    });
    console.log(`\n${inColumns([[`body of ${bytes} bytes`, 'CPU of the call', ''], ...rows])}`);
    if (median(micros[1]) - unsigned > goalMicros && bytes === bodyBytes[0]) isGoalMet = false;
  }
  if (!isGoalMet) console.log(`\ngoal missed: v1 costs more than ${goalMicros} µs`);
  return true;
});

/**
 * CPU microseconds of one call, the receiver's left out.
 * @param {import('../src/delivery/sender.service.js').Sender} sender
 * @param {import('../src/subscriptions/subscription.js').Subscription} subscription
 * @param {Buffer} body
 */
async function measure(sender, subscription, body) {
  let left = callsPerRound;
  const wanted = { begun: () => {}, isStillWanted: () => Promise.resolve(true) };
  const caller = async () => {
    while (left-- > 0) {
      const delivery = { notificationId: '019a1b2c-0000-7000-8000-000000000000', attempts: 0, body };
      const response = await sender.send(/** @type {never} */ (delivery), subscription, 'at-least-once', wanted);
      if (response.kind !== 'answered') throw new Error(`A call came to nothing: ${JSON.stringify(response)}`);
    }
  };
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: together }, caller));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / callsPerRound;
}

/** The program's own, without what comes before and after a call. */
async function senderTo(/** @type {string} */ url) {
  /** @type {typeof import('../src/config/settings.js')} */
  const { readSettings } = await compiled('config/settings.js');
  /** @type {typeof import('../src/delivery/sender.service.js')} */
  const { Sender } = await compiled('delivery/sender.service.js');
  /** @type {typeof import('../src/delivery/webhook-client.http.js')} */
  const { HttpWebhookClient } = await compiled('delivery/webhook-client.http.js');
  /** @type {typeof import('../src/outbound/outbound.service.js')} */
  const { Outbound } = await compiled('outbound/outbound.service.js');
  /** @type {typeof import('../src/credentials/credentials.js')} */
  const { verbatim } = await compiled('credentials/credentials.js');
  /** @type {typeof import('../src/signing/signing-key.js')} */
  const { newKey, SigningKey } = await compiled('signing/signing-key.js');
  const settings = readSettings({ CALLBACK_NETWORKS: 'any' });
  const client = new HttpWebhookClient(new Outbound(settings));
  const reporter = /** @type {never} */ ({ started: () => Date.now() });
  const subscriptionWith = (/** @type {import('../src/signing/signing-key.js').SigningScheme[]} */ schemes) => {
    const signingKeys = schemes.map((scheme) => new SigningKey('', scheme, newKey(scheme).secret, null));
    const said = { callbackUrl: `${url}/0`, auth: 'Bearer bench', credentials: verbatim, unreadable: null };
    const subscription = { ...said, timeoutSeconds: null, signingKeys };
    return /** @type {import('../src/subscriptions/subscription.js').Subscription} */ (
      /** @type {unknown} */ (subscription)
    );
  };
  return {
    sender: new Sender(client, /** @type {never} */ ({}), reporter, { tracer: undefined }, { settings }),
    subscriptionWith,
    close: () => client.close(),
  };
}
