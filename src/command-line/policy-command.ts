import type { Command } from 'commander';
import type { RetryPolicy, RetryPolicyPreview } from './answers.js';
import { section, table } from './layout.js';
import { id, positiveNumber, wholeNumber } from './options.js';
import type { Session } from './session.js';
import type { Terminal } from './terminal.js';
import { timeline } from './timeline.js';
import { counted } from '../infra/counted.js';

interface PolicyOptions {
  subscription?: string;
  maxRetries?: number;
  backoffFactor?: number;
  baseFactor?: number;
  maxDelay?: number;
  jitter?: number;
}

const widest = 72;

export function addPolicyCommand(program: Command, session: Session): void {
  program
    .command('policy')
    .description('Shows when a delivery that never succeeds is tried. Other values can be tried out; nothing is saved.')
    .option('--subscription <id>', 'As this subscription has it; otherwise the general policy.', id)
    .option('--max-retries <count>', 'Tries out this number of retries.', wholeNumber(0, 100))
    .option('--backoff-factor <seconds>', 'Tries out this factor of the delays.', positiveNumber)
    .option('--base-factor <factor>', 'Tries out this base of the delays.', positiveNumber)
    .option('--max-delay <seconds>', 'Tries out this longest delay.', wholeNumber(1, 604_800))
    .option('--jitter <fraction>', 'Tries out this share of chance, 0 to 1.', Number)
    .action(async ({ subscription, maxDelay, ...tried }: PolicyOptions) => {
      const of = subscription === undefined ? undefined : await policyOf(session, subscription);
      const query = { ...of, ...tried, ...(maxDelay === undefined ? {} : { maxDelaySeconds: maxDelay }) };
      const preview = await session.client.request<RetryPolicyPreview>('GET', '/admin/v1/retry-policy/preview', {
        query: { ...query },
      });
      session.show(preview, () => draw(session.terminal, preview));
    });
}

async function policyOf({ client }: Session, subscription: string): Promise<RetryPolicy> {
  const path = `/admin/v1/subscriptions/${subscription}/retry-policy`;
  const answer = await client.request<RetryPolicy>('GET', path);
  const { maxRetries, backoffFactor, baseFactor, maxDelaySeconds, jitter } = answer;
  return { maxRetries, backoffFactor, baseFactor, maxDelaySeconds, jitter };
}

function draw(terminal: Terminal, { policy, attempts }: RetryPolicyPreview): string {
  const { maxRetries, backoffFactor, baseFactor, maxDelaySeconds, jitter } = policy;
  return [
    `${counted(attempts.length, 'attempt')} in ${attempts.at(-1)!.elapsed}: after failure n, ${backoffFactor} s × ${baseFactor}^(n − 1), at most ${maxDelaySeconds} s, ±${Math.round(jitter * 100)} %; ${counted(maxRetries, 'retry', 'retries')}.`,
    '',
    table(
      terminal,
      ['attempt', 'after the one before', 'with jitter', 'since the first'],
      attempts.map((each) => [
        each.attempt,
        each.attempt === 1 ? null : each.delay,
        each.attempt === 1 ? null : `${each.shortestDelaySeconds} to ${each.longestDelaySeconds} s`,
        each.elapsed,
      ]),
    ),
    section(
      terminal,
      'Since the first attempt',
      timeline(
        attempts.map(({ elapsedSeconds }) => elapsedSeconds),
        Math.min(terminal.columns, widest),
      ),
    ),
  ].join('\n');
}
