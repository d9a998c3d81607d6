/**
 * A server that this program cannot do without was not reached, or let nobody in; or the embedded database is of no
 * use. The message is for an operator.
 */
export class CannotConnect extends Error {
  constructor(server: 'Postgres' | 'RabbitMQ' | `The embedded database in ${string}`, cause: unknown, advice: string) {
    super(`${server} cannot be used: ${reasonOf(cause).replace(/\.$/, '')}. ${advice}`, { cause });
  }
}

/** An error's code, or else its text: for a person at the machine. Messages of drivers name hosts, never passwords. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: string };
  // The system's begin with it.
  const isSaid = typeof code !== 'string' || (message ?? '').startsWith(`${code}:`);
  const parts = [isSaid ? '' : code, message ?? ''].filter((part) => part !== '');
  return parts.join(': ') || String(error);
}
