// `npm run signatures`: has a running Heraut sign deliveries while its keys are rotated, has them verified by others,
// and tries the examples of docs/receiving.md.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startInstallation } from './bench/installation.mjs';
import { inColumns } from './bench/report.mjs';
import { readCommandLine, wholeNumber } from './command-line.mjs';
import { runCommand } from './command.mjs';
import { makeGuardedDirectory } from './private-servers.mjs';
import { makeReady } from './ready-to-run.mjs';
import { forgeriesOf } from './signatures/call.mjs';
import { makeExamples, tryExample } from './signatures/examples.mjs';
import { Rotation } from './signatures/rotation.mjs';
import { startVerifiers } from './signatures/verifiers.mjs';

const usage = `npm run signatures -- [options]

  --deliveries N  signed deliveries that are verified (10000)
  --rotations N   of each of their two keys meanwhile (9)
  --help`;

const values = readCommandLine(usage, () =>
  parseArgs({
    options: {
      deliveries: { type: 'string', default: '10000' },
      rotations: { type: 'string', default: '9' },
      help: { type: 'boolean' },
    },
  }),
);
const deliveries = wholeNumber(usage, 'deliveries', values.deliveries, 100, 1_000_000);
const rotations = wholeNumber(usage, 'rotations', values.rotations, 4, 1000);

await runCommand(async (run) => {
  const { log, onEnd } = run;
  await makeReady(log);
  const { directory, tellGuardian, remove } = makeGuardedDirectory('signatures');
  onEnd(remove);
  for (const name of ['openssl', 'examples']) mkdirSync(join(directory, name));
  const { verifiers, absent, stop } = startVerifiers(join(directory, 'openssl'));
  onEnd(stop);
  const examples = makeExamples(join(directory, 'examples'), log);
  const installation = await startInstallation({
    embedded: true,
    processes: undefined,
    guarantee: 'at-least-once',
    cpuProf: undefined,
    prepareDatabase: undefined,
    directory,
    filters: [],
    onStarted: onEnd,
    tellGuardian,
    log,
  });
  const outcome = await new Rotation(installation, verifiers, run).run({ deliveries, rotations });
  const what = { genuine: outcome.samples, otherKeys: outcome.endedKeys };
  const tried = [];
  for (const example of examples) tried.push({ ...example, ...(await tryExample(example, what)) });
  const rows = [
    ['verifier', 'scheme', 'accepted', 'forged, refused', 'ways'],
    ...outcome.verified.map(({ name, scheme, accepted, refused, forgeries }) => [
      name,
      scheme,
      String(accepted),
      String(refused),
      `${forgeries.size} of ${forgeriesOf(scheme).length}`,
    ]),
  ];
  const ofExamples = [
    ['example', 'scheme', 'accepted', 'forged, refused'],
    ...tried.map(({ name, scheme, accepted, refused }) => [
      name,
      scheme,
      ...(accepted === undefined
        ? ['not installed here', '']
        : [`${accepted} of ${outcome.samples.length}`, String(refused)]),
    ]),
  ];
  const { deliveries: made, mostSignatures } = outcome;
  console.log(
    `\n${made} deliveries, ${rotations} rotations of both keys, up to ${mostSignatures} signatures in a header`,
  );
  console.log(`\n${inColumns(rows)}\n\n${inColumns(ofExamples)}`);
  if (absent.length > 0) console.log(`\nnot installed here, so not tried: ${absent.join(', ')}`);
  const wrong = [...outcome.wrong, ...tried.flatMap((each) => each.wrong ?? [])];
  for (const sentence of wrong) console.log(`FAILED: ${sentence}`);
  return wrong.length === 0;
});
