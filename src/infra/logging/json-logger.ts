import type { LoggerService } from '@nestjs/common';
import { pino, type DestinationStream, type Logger as Pino } from 'pino';
import type { Settings } from '../../config/settings.js';
import { openStandardOutput, type LogOutput } from './standard-output.js';
import { isPlain, readableError, withoutSecrets } from './without-secrets.js';

const levels = { log: 'info', error: 'error', warn: 'warn', debug: 'debug', verbose: 'trace', fatal: 'fatal' } as const;

/** The part that lines have in common. */
interface Source {
  pino: Pino;
  /** The same as pino's bindings: `,"source":"Delivery"`. */
  text: string;
}

/**
 * Structured logs: one JSON object a line, on standard output. An event is `logger.log({ event: 'delivery.attempted', …
 * })`; anything under `error` is written with its stack and causes.
 */
export class JsonLogger implements LoggerService {
  /** By the class that logs: its name is written once, here. */
  private readonly bySource = new Map<string, Source>();

  private constructor(
    private readonly root: Source,
    private readonly output: DestinationStream | LogOutput,
  ) {}

  static open(
    settings: Pick<Settings, 'LOG_LEVEL'>,
    output: DestinationStream | LogOutput = openStandardOutput(),
  ): JsonLogger {
    const root = pino(
      {
        level: settings.LOG_LEVEL,
        base: null,
        timestamp: pino.stdTimeFunctions.isoTime,
        formatters: { level: (level) => ({ level }) },
        serializers: { error: readableError },
      },
      output,
    );
    return new JsonLogger({ pino: root, text: '' }, output);
  }

  /** The same log, each line with the `pid`: for processes that write to one log. */
  ofProcess(pid: number): JsonLogger {
    return new JsonLogger(childOf(this.root, { pid }), this.output);
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
    if ('flush' in this.output) await this.output.flush();
  }

  /**
   * Nest adds the class that logs as the last argument. Nearly every event is plain, and pino, which puts a line
   * together piece by piece, takes twice as long for it as `JSON.stringify`.
   */
  private write(kind: keyof typeof levels, message: unknown, rest: unknown[]): void {
    const last = rest.at(-1);
    const { pino, text } = typeof last === 'string' ? this.of(last) : this.root;
    const level = levels[kind];
    if (!pino.isLevelEnabled(level)) return;
    const fields = typeof message === 'object' && message !== null ? message : { message: String(message) };
    if (!isPlain(fields)) return pino[level](withoutSecrets(fields));
    this.output.write(`{"level":"${level}","time":"${isoNow()}"${text},${JSON.stringify(fields).slice(1)}\n`);
  }

  private of(name: string): Source {
    let source = this.bySource.get(name);
    if (!source) this.bySource.set(name, (source = childOf(this.root, { source: name })));
    return source;
  }
}

let lastMs = 0;
let lastText = '';

/** Of the lines of a busy process, several are written in the same millisecond. */
function isoNow(): string {
  const now = Date.now();
  if (now !== lastMs) {
    lastMs = now;
    lastText = new Date(now).toISOString();
  }
  return lastText;
}

const childOf = ({ pino, text }: Source, bindings: object): Source => ({
  pino: pino.child(bindings),
  text: `${text},${JSON.stringify(bindings).slice(1, -1)}`,
});
