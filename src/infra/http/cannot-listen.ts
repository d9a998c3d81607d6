/** An address that this process is to listen on is not to be had. The message is for an operator. */
export class CannotListen extends Error {}

/**
 * For `localhost` Fastify makes a server of its own for each further address, which would have none of the rules and
 * time limits of this one, and be cut when the process stops; Node listens on the first address alone, whichever it is.
 */
export const addressToListenOn = (host: string): string => (host.toLowerCase() === 'localhost' ? '127.0.0.1' : host);

/** The settings that say where. */
export interface ListeningSettings {
  host: 'HOST' | 'ADMIN_HOST';
  port: 'PORT' | 'ADMIN_PORT';
}

/**
 * @param listening rejects with what the system says
 * @throws {CannotListen} where it says something that the settings can mend
 */
export async function orSayWhy<T>(listening: Promise<T>, settings: ListeningSettings): Promise<T> {
  try {
    return await listening;
  } catch (error) {
    const remedy = remedyFor((error as NodeJS.ErrnoException).code, settings);
    if (remedy === undefined) throw error;
    throw new CannotListen(`${(error as Error).message}. ${remedy}`, { cause: error });
  }
}

function remedyFor(code: string | undefined, { host, port }: ListeningSettings): string | undefined {
  switch (code) {
    case 'EADDRINUSE':
      return `Another program listens there: end it, or set ${port} to a port that is free.`;
    case 'EACCES':
      return `This user may not listen there: set ${port} to a port above 1023.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `That is no address of this machine: set ${host} to one that is, or to 0.0.0.0 for all, :: where there is IPv6.`;
    default:
      return undefined;
  }
}
