import { isTlsError } from '../tls-errors.js';
import { VirtualHostRefused } from './connect.js';
import { filesAdvice } from './tls-files.js';

/** The message to an operator where RabbitMQ is reached, and refuses. */
export interface Refusal {
  /** Names no host, user or queue: health shows it to anyone. */
  reason: string;
  advice: string;
}

/**
 * Those of a user, by what was refused without it: class and method of AMQP 0-9-1. The text of RabbitMQ about it
 * depends on its version.
 */
const permissions: Record<string, string> = {
  '50.10': 'configure', // queue.declare
  '60.20': 'read', // basic.consume
  '60.40': 'write', // basic.publish
};

/** One message: others go on. */
export function isTooLarge(error: unknown): boolean {
  const { code, classId, methodId } = error as { code?: unknown; classId?: number; methodId?: number };
  return code === 406 && classId === 60 && methodId === 40;
}

/** @returns undefined: it is another error */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof VirtualHostRefused) {
    return {
      reason: 'its virtual host is not there, is closed to this user, or takes no more connections',
      advice:
        'Look at the virtual host at the end of AMQP_URL (rabbitmqctl list_vhosts), and at who may use it (rabbitmqctl list_permissions -p VHOST). Each process takes two connections: see how many there may be (rabbitmqctl list_vhost_limits -p VHOST, rabbitmqctl list_user_limits). RabbitMQ’s own log says which it is.',
    };
  }
  const { message, code, classId, methodId } = error as {
    message?: string;
    code?: unknown;
    classId?: number;
    methodId?: number;
  };
  if (message?.startsWith('Handshake terminated by server: 403')) {
    return { reason: 'it refuses the user or the password', advice: 'The user or the password in AMQP_URL is wrong.' };
  }
  if (isTooLarge(error)) {
    return {
      reason: 'it refuses messages of this size',
      advice:
        'Set max_message_size of RabbitMQ to 300000 bytes at least (docs/running.md#rabbitmq). Meanwhile deliveries wait in the ledger.',
    };
  }
  if (code !== 403) return undefined;
  return {
    reason: `its user has no ${permissions[`${classId}.${methodId}`] ?? 'sufficient'} permission`,
    advice:
      "The user in AMQP_URL needs all three: rabbitmqctl set_permissions -p VHOST USER '.*' '.*' '.*', or those in docs/running.md#rabbitmq. Meanwhile deliveries wait in the ledger.",
  };
}

function tlsAdvice(error: unknown): string | undefined {
  const { code, syscall, message } = error as { code?: unknown; syscall?: unknown; message?: string };
  if (syscall === 'open') return filesAdvice;
  if (isTlsError(error))
    return 'Name the file of the authority that has signed its certificate (cacertfile in AMQP_URL, or NODE_EXTRA_CA_CERTS), and the host as the certificate does; where it wants a certificate of the client, certfile and keyfile; see that none of them has ended; and name the port that speaks TLS (5671): docs/running.md#tls.';
  // In place of an answer to the first bytes, which were not those of TLS; or to a certificate that was not there.
  if (code === 'ECONNRESET' || message?.startsWith('Socket closed abruptly'))
    return 'Is RabbitMQ running behind this address? The connection ended before anything was said. Does its port want TLS (amqps:// in AMQP_URL), or a certificate of the client (certfile and keyfile in AMQP_URL): docs/running.md#tls?';
  return undefined;
}

/** Advice to an operator where RabbitMQ was not reached, or let nobody in. */
export const connectionAdvice = (error: unknown): string =>
  refusalOf(error)?.advice ??
  tlsAdvice(error) ??
  'Is RabbitMQ running, and is this its address? Check AMQP_URL. Publishing goes on meanwhile, delivering does not.';
