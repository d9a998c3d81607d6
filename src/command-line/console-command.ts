import type { Command } from 'commander';
import type { Session } from './session.js';

interface Ticket {
  url: string;
  expiresAt: string;
}

export function addConsoleCommand(program: Command, session: Session): void {
  program
    .command('console')
    .description('Makes a link that signs a browser on this machine in to the console, once.')
    .addHelpText(
      'after',
      '\nElsewhere, and behind a published port (Docker Compose), sign in at /console, with OpenID Connect or as the superuser.',
    )
    .action(async () => {
      const ticket = await session.client.request<Ticket>('POST', '/admin/v1/sign-in-tickets');
      session.show(ticket, () => ticket.url);
      session.note(`It works once, on this machine, for ${minutesUntil(ticket.expiresAt, Date.now())}.`);
    });
}

function minutesUntil(time: string, nowMs: number): string {
  const minutes = Math.max(1, Math.round((Date.parse(time) - nowMs) / 60_000));
  return minutes === 1 ? 'a minute' : `${minutes} minutes`;
}
