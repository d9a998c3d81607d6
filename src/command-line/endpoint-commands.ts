import type { Command } from 'commander';
import type { OpenEndpoint } from './answers.js';
import { moment, table } from './layout.js';
import type { Session } from './session.js';

const path = '/admin/v1/endpoints';

export function addEndpointCommands(program: Command, session: Session): void {
  const endpoints = program.command('endpoints').description('Endpoints in trouble, to which nothing is sent now.');

  endpoints
    .command('list')
    .description('Lists the endpoints whose circuit breaker is open, the longest first.')
    .action(async () => {
      const answer = await session.client.request<{ endpoints: OpenEndpoint[] }>('GET', path);
      session.show(answer, () =>
        answer.endpoints.length === 0
          ? 'No circuit breaker is open.'
          : table(
              session.terminal,
              ['open since', 'next probe', 'probes', 'subscriptions', 'address', 'reason'],
              answer.endpoints.map((each) => [
                moment(each.openedAt),
                moment(each.nextProbeAt),
                each.probeCount,
                each.subscriptionCount,
                each.address,
                each.reason,
              ]),
            ),
      );
    });

  endpoints
    .command('reset')
    .description(
      'Closes the circuit breaker of an endpoint: what is held for it goes out again. Probes do so by themselves.',
    )
    .argument('<address>', 'as it is listed, or the callback URL of a subscription')
    .action(async (address: string) => {
      await session.client.request('POST', `${path}/reset`, { body: { address } });
      session.show({ address, reset: true }, () => `${address} is closed.`);
    });
}
