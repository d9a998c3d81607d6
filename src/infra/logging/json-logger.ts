import type { LoggerService } from '@nestjs/common';
import { pino, type DestinationStream, type Logger as Pino } from 'pino';
import type { Settings } from '../../config/settings.js';
import { readableError, withoutSecrets } from './without-secrets.js';

const levels = { log: 'info', error: 'error', warn: 'warn', debug: 'debug', verbose: 'trace', fatal: 'fatal' } as const;

/**
 * Structured logs: one JSON object a line, on standard output. An event is `logger.log({ event: 'delivery.attempted', … })`;
 * anything under `error` is written with its stack and causes.
 */
export class JsonLogger implements LoggerService {
  /** By the class that logs: its name is written once, here. */
  private readonly bySource = new Map<string, Pino>();

  private constructor(private readonly pino: Pino) {}

  // Buffered by default: at thousands of events a second a write per line would cost more than the event.
  static open(
    settings: Pick<Settings, 'LOG_LEVEL'>,
    destination: DestinationStream = pino.destination({ fd: 1, sync: false, minLength: 4096, periodicFlush: 250 }),
  ): JsonLogger {
    return new JsonLogger(
      pino(
        {
          level: settings.LOG_LEVEL,
          base: null,
          timestamp: pino.stdTimeFunctions.isoTime,
          formatters: { level: (level) => ({ level }) },
          serializers: { error: readableError },
        },
        destination,
      ),
    );
  }

  /** The same log, each line with the `pid`: for processes that write to one log. */
  ofProcess(pid: number): JsonLogger {
    return new JsonLogger(this.pino.child({ pid }));
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

  /** Writes what is still buffered, before the process ends. */
  flush(): void {
    this.pino.flush();
  }

  /** Nest adds the class that logs as the last argument. */
  private write(level: keyof typeof levels, message: unknown, rest: unknown[]): void {
    const last = rest.at(-1);
    const pino = typeof last === 'string' ? this.of(last) : this.pino;
    const fields = typeof message === 'object' && message !== null ? message : { message: String(message) };
    pino[levels[level]](withoutSecrets(fields));
  }

  private of(source: string): Pino {
    let pino = this.bySource.get(source);
    if (!pino) this.bySource.set(source, (pino = this.pino.child({ source })));
    return pino;
  }
}
