import type { LoggerService } from '@nestjs/common';
import { pino, type DestinationStream, type Logger as Pino } from 'pino';
import type { Settings } from '../../config/settings.js';
import { openStandardOutput, type LogDestination } from './standard-output.js';

const levels = { log: 'info', error: 'error', warn: 'warn', debug: 'debug', verbose: 'trace', fatal: 'fatal' } as const;

/** Names of fields that are never written, whichever object they are in. */
const secrets = ['secret', 'auth', 'authorization', 'password', 'token'];
/** Drivers put the values of a failed statement into its error: secrets and notifications among them. */
const statementValues = ['error', 'error.cause', 'error.cause.cause'].flatMap((error) => [
  `${error}.parameters`,
  `${error}.detail`,
  `${error}.driverError.detail`,
]);

/**
 * Structured logs: one JSON object a line, on standard output. An event is `logger.log({ event: 'delivery.attempted', … })`;
 * anything under `error` is written with its stack and causes.
 */
export class JsonLogger implements LoggerService {
  private constructor(
    private readonly pino: Pino,
    private readonly destination: DestinationStream & Partial<LogDestination>,
  ) {}

  static open(
    settings: Pick<Settings, 'LOG_LEVEL'>,
    destination: DestinationStream & Partial<LogDestination> = openStandardOutput(),
  ): JsonLogger {
    return new JsonLogger(
      pino(
        {
          level: settings.LOG_LEVEL,
          base: null,
          timestamp: pino.stdTimeFunctions.isoTime,
          formatters: { level: (level) => ({ level }) },
          serializers: { error: pino.stdSerializers.errWithCause },
          redact: {
            paths: [...secrets.flatMap((name) => [name, `*.${name}`]), ...statementValues],
            censor: '[secret]',
          },
        },
        destination,
      ),
      destination,
    );
  }

  /** Events are objects; a mere text comes from the framework and tells an operator nothing. */
  log(message: unknown, ...rest: unknown[]): void {
    this.write(typeof message === 'string' ? 'debug' : 'log', message, rest);
  }

  error(message: unknown, ...rest: unknown[]): void {
    this.write('error', message, rest);
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest);
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.write('verbose', message, rest);
  }

  fatal(message: unknown, ...rest: unknown[]): void {
    this.write('fatal', message, rest);
  }

  /** Resolves when what is still buffered is written, before the process ends; not much later when nobody reads it. */
  async flush(): Promise<void> {
    await this.destination.flush?.();
  }

  /** Nest adds the class that logs as the last argument. */
  private write(level: keyof typeof levels, message: unknown, rest: unknown[]): void {
    const last = rest.at(-1);
    const source = typeof last === 'string' ? last : undefined;
    const fields = typeof message === 'object' && message !== null ? message : { message: String(message) };
    this.pino[levels[level]](source === undefined ? fields : { ...fields, source });
  }
}
