import type { Command } from 'commander';
import { superuserToken } from './credentials.js';
import { wholeNumber } from './options.js';
import type { Session } from './session.js';

export function addTokenCommand(program: Command, session: Session): void {
  program
    .command('token')
    .description('Makes a token of the superuser, for curl and others. It asks nothing of the server.')
    .option(
      '--valid <seconds>',
      'How long it is valid; without, as long as JWT_EXPIRY of the server says.',
      wholeNumber(1, 31_536_000),
    )
    .addHelpText('after', '\nExample: curl -H "Authorization: Bearer $(heraut token)" …')
    .action(({ valid }: { valid?: number }) => {
      const token = superuserToken(session.environment, Date.now(), valid);
      session.show({ token }, () => token);
    });
}
