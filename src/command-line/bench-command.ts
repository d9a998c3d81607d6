import type { Command } from 'commander';
import { CommandFailure, exits } from './exits.js';
import { fields } from './layout.js';
import type { LoadResult } from './load.undici.js';
import { positiveNumber, wholeNumber } from './options.js';
import { ProgressBar } from './progress-bar.js';
import type { Session } from './session.js';
import { tokenFor } from './credentials.js';
import { counted } from '../infra/counted.js';

const ownChannel = 'heraut-bench';

interface BenchOptions {
  channel: string;
  count: number;
  rate?: number;
  connections: number;
  yes?: true;
}

export function addBenchCommand(program: Command, session: Session): void {
  program
    .command('bench')
    .description('Publishes so many notifications, and says how many were accepted a second and how long each took.')
    .option('--channel <name>', 'Publishes on this channel; its subscribers get it all.', ownChannel)
    .option('--count <count>', 'So many notifications.', wholeNumber(1, 1_000_000), 1000)
    .option('--rate <count>', 'So many a second; without, as fast as they are answered.', positiveNumber)
    .option('--connections <count>', 'So many at once.', wholeNumber(1, 512), 16)
    .option('--yes', 'Does not ask before it loads a server elsewhere, or a channel that others use.')
    .action((options: BenchOptions) => bench(session, options));
}

async function bench(session: Session, options: BenchOptions): Promise<void> {
  const { channel, count, rate, connections, yes = false } = options;
  const { url } = session.client;
  const others = [
    ...(isLoopback(url) ? [] : [`${url} is not this machine`]),
    ...(channel === ownChannel ? [] : [`subscribers of ${channel} get all of it`]),
  ];
  const question = `Publish ${counted(count, 'notification')}? ${others.join(', and ')}.`;
  if (others.length > 0 && !(await session.confirm(question, yes))) return;
  await makeSureOfChannel(session, channel);

  const { load } = await import('./load.undici.js');
  const bar = await ProgressBar.start(session, count);
  const token = () => tokenFor(session.environment, Date.now());
  const { result, isInterrupted } = await session.terminal.untilInterrupted(async (interrupted) => ({
    result: await load({ url, token, channel, count, rate, connections }, interrupted, (done) => bar.update(done)),
    isInterrupted: interrupted.aborted,
  }));
  bar.stop();
  const shown = summary(result);
  session.show(shown, () => draw(session, shown));
  if (isInterrupted) session.exit = exits.interrupted;
  else if (result.accepted < count) session.exit = exits.failed;
}

const isLoopback = (url: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);

/** The one of its own is made where it is missing: nobody is subscribed to it. */
async function makeSureOfChannel({ client }: Session, channel: string): Promise<void> {
  const found = await client.request<unknown[]>('GET', '/api/v1/kanaal', { query: { naam: channel } });
  if (found.length > 0) return;
  if (channel !== ownChannel) throw new CommandFailure(exits.notFound, `There is no channel ${channel}.`);
  // Without a link to its documentation, which the server may demand to answer.
  await client.request('POST', '/api/v1/kanaal', { body: { naam: channel, filters: [] } });
}

interface Summary {
  accepted: number;
  others: Record<string, number>;
  seconds: number;
  acceptedPerSecond: number;
  latencyMs: { p50: number; p90: number; p99: number; longest: number } | null;
}

function summary({ accepted, others, seconds, latencies }: LoadResult): Summary {
  const at = (share: number) =>
    rounded(latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))]!);
  return {
    accepted,
    others,
    seconds: rounded(seconds),
    acceptedPerSecond: rounded(accepted / seconds),
    latencyMs: latencies.length === 0 ? null : { p50: at(0.5), p90: at(0.9), p99: at(0.99), longest: at(1) },
  };
}

const rounded = (value: number): number => Math.round(value * 100) / 100;

function draw({ terminal }: Session, { accepted, others, seconds, acceptedPerSecond, latencyMs }: Summary): string {
  const failures = Object.entries(others).map(([what, times]) => `${times} × ${what}`);
  return fields(terminal, {
    accepted: `${accepted} in ${seconds} s`,
    'a second': acceptedPerSecond,
    'not accepted': failures.join(', ') || undefined,
    latency:
      latencyMs === null
        ? undefined
        : `p50 ${latencyMs.p50} ms, p90 ${latencyMs.p90} ms, p99 ${latencyMs.p99} ms, longest ${latencyMs.longest} ms`,
  });
}
