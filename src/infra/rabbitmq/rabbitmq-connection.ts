import type { ChannelModel } from 'amqplib';
import { Logger } from '@nestjs/common';
import { RepeatedFailures } from '../logging/repeated-failures.js';
import { answered, cut } from './answered.js';
import { close, stoppingMs } from './close.js';
import { connect } from './connect.js';
import { refusalOf } from './connection-advice.js';
import { serverVersionOf } from './server-version.js';

const firstDelayMs = 100;
/** At most this long after the return of a broker a process is connected again; a try costs the broker nothing. */
const longestDelayMs = 2000;
/**
 * One that is ready for so long works. One that is lost earlier, at the first message that the broker refuses for
 * example, would otherwise be made ten times a second.
 */
const steadyAfterMs = 5000;
/** For its channels and queues, a dozen calls. */
const setUpWithinMs = 10_000;
/** A connection that is just being made when it is closed. */
const abandonAfterMs = 1000;

/**
 * One AMQP connection that is re-established for ever. `setUp` runs on every new connection and opens its channels;
 * until it has resolved, the connection counts as down.
 */
export class RabbitMqConnection {
  private readonly logger: Logger;
  /** Losses, and tries to connect, since it last worked. */
  private readonly tries: RepeatedFailures;
  private model: ChannelModel | undefined;
  private closing = false;
  private delayMs = firstDelayMs;
  private timer: NodeJS.Timeout | undefined;
  private ready = false;
  /** Milliseconds of `now`; undefined: it is not ready, or works. */
  private readySince: number | undefined;
  /** It was lost as soon as it was ready, and has not worked since. */
  private isUnsteady = false;
  private lastError: unknown;
  private trying: Promise<void> | undefined;

  constructor(
    private readonly url: string,
    private readonly purpose: string,
    private readonly setUp: (model: ChannelModel) => Promise<void>,
    private readonly tearDown: () => void,
    private readonly now: () => number,
  ) {
    this.logger = new Logger(`RabbitMQ ${purpose}`);
    this.tries = new RepeatedFailures(this.logger, { failed: { event: 'rabbitmq.disconnected' } }, this.now);
  }

  get isReady(): boolean {
    return this.ready;
  }

  /** Of the broker; undefined while there is no connection. */
  get serverVersion(): string | undefined {
    return this.model && serverVersionOf(this.model);
  }

  /** Why it is not ready; undefined when it is. */
  get trouble(): unknown {
    return this.ready ? undefined : (this.lastError ?? new Error('connecting'));
  }

  /** Resolves after the first try, successful or not: starting does not wait for a broker that is down. */
  open(): Promise<void> {
    return (this.trying ??= this.connect());
  }

  /** To be called each second. */
  look(): void {
    if (this.readySince === undefined || this.now() - this.readySince < steadyAfterMs) return;
    this.readySince = undefined;
    this.delayMs = firstDelayMs;
    this.tries.worked();
    if (this.isUnsteady) this.sayConnected();
    this.isUnsteady = false;
  }

  /** Closes the channels first (the caller does), then this: the other way round the last acks would be lost. */
  async close(): Promise<void> {
    this.closing = true;
    clearTimeout(this.timer);
    if (this.model && !this.ready) cut(this.model, new Error('closed'));
    // Not longer: a broker that hangs would hold up the end of the process. `connect` ends what it makes after this.
    await Promise.race([this.trying, new Promise((resolve) => setTimeout(resolve, abandonAfterMs).unref())]);
    const model = this.model;
    this.lose();
    if (model) await close(model, stoppingMs);
  }

  /**
   * Of no use as it is: it is closed, and another one is made, after `error`. Does nothing to one that is lost already.
   */
  abandon(model: ChannelModel, error: unknown): void {
    if (this.model !== model) return;
    this.lost(model, error);
    void close(model);
  }

  private async connect(): Promise<void> {
    let connected: ChannelModel | undefined;
    try {
      const model = (connected = await connect(this.url, `heraut ${this.purpose}`));
      let failure: unknown;
      // Without a listener an error event would end the process; what follows it is always `close`, which has not every
      // error with it.
      model.on('error', (error: unknown) => (failure = error));
      if (this.closing) return cut(model, new Error('closed'));
      this.model = model;
      // An operator who closes a connection, and a broker that stops, are told with `close` alone.
      model.once('close', (error: unknown) =>
        this.lost(model, error ?? failure ?? new Error('the connection was closed')),
      );
      await answered(model, this.setUp(model), setUpWithinMs);
      if (this.model !== model) return; // lost while setting up
      this.ready = true;
      this.lastError = undefined;
      this.readySince = this.now();
      if (!this.isUnsteady) this.sayConnected();
    } catch (error) {
      if (connected) return this.abandon(connected, error);
      this.lastError = error;
      this.again();
    }
  }

  private sayConnected(): void {
    this.logger.log({ event: 'rabbitmq.connected', purpose: this.purpose });
  }

  private lost(model: ChannelModel, error: unknown): void {
    if (this.model !== model) return;
    this.lastError = error;
    this.lose();
    this.again();
  }

  private lose(): void {
    this.model = undefined;
    this.ready = false;
    this.isUnsteady ||= this.readySince !== undefined;
    this.readySince = undefined;
    this.tearDown();
  }

  private again(): void {
    if (this.closing) return;
    const advice = refusalOf(this.lastError)?.advice; // it would be refused again on the next connection
    this.tries.failed(this.lastError, { purpose: this.purpose, retryInMs: this.delayMs, advice });
    this.timer = setTimeout(() => {
      this.trying = this.connect();
    }, this.delayMs);
    this.delayMs = Math.min(longestDelayMs, this.delayMs * 2);
  }
}
