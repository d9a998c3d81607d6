import { Logger } from '@nestjs/common';
import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import { answered } from '../infra/rabbitmq/answered.js';
import { close, stoppingMs } from '../infra/rabbitmq/close.js';
import { isTooLarge } from '../infra/rabbitmq/connection-advice.js';
import { RabbitMqConnection } from '../infra/rabbitmq/rabbitmq-connection.js';
import { requireTlsFiles } from '../infra/rabbitmq/tls-files.js';
import { tryPublishing } from '../infra/rabbitmq/try-publishing.js';
import type { Chunk } from './chunk.js';
import { encodeChunk } from './chunk-format.js';
import { RabbitMqConsumer } from './consumer.rabbitmq.js';
import {
  DeliveryQueue,
  lanes,
  perLane,
  type Consumption,
  type Lane,
  type PublishOutcome,
  type Take,
} from './delivery-queue.js';
import { ForeignReaders } from './foreign-readers.js';
import { LaneSilent } from './lane-silent.js';
import { QueueNotReached } from './queue-not-reached.js';
import { declare, topology, type QueueDeclaration } from './topology.rabbitmq.js';
import { betweenLooksMs, UnconfirmedChunks, type Settle } from './unconfirmed-chunks.js';

/** A message that is refused is published again within seconds, from the ledger; it may also be withdrawn. */
const refusedForMs = 60_000;

interface RabbitMqOptions {
  /** Whether any worker is, in any process: each reads all queues. */
  isWorkerAlive?: () => boolean;
  /** How many workers are, in all processes. Undefined: it is not known. */
  workers?: () => number;
  /** Milliseconds, of a clock that runs steadily. */
  now?: () => number;
  /** Calls back each second, until what is returned is called. */
  everySecond?: (callBack: () => void) => () => void;
}

function everySecond(callBack: () => void): () => void {
  const timer = setInterval(callBack, betweenLooksMs).unref();
  return () => clearInterval(timer);
}

/** amqplib says with one callback that a chunk is confirmed, that it is refused, and that the channel is closed. */
const isAnswer = (error: unknown): boolean => !error || (error as Error).message === 'message nacked';

/**
 * RabbitMQ, on two connections: a blocked publisher must not hold back consumers and their acks. Publisher confirms are
 * always on. Reconnects for ever.
 */
export class RabbitMqDeliveryQueue extends DeliveryQueue {
  readonly process = null;
  private readonly logger = new Logger('RabbitMqDeliveryQueue');
  private readonly declarations: QueueDeclaration[];
  private readonly publishing: RabbitMqConnection;
  private readonly consuming: RabbitMqConnection;
  /**
   * One of each lane: RabbitMQ holds up a channel for half a minute whose first message goes to a queue without a
   * leader.
   */
  private publishers: Record<Lane, ConfirmChannel> | undefined;
  private consumingModel: ChannelModel | undefined;
  private publishingModel: ChannelModel | undefined;
  private readonly unconfirmed: Record<Lane, UnconfirmedChunks>;
  private readonly confirms = perLane((lane) => {
    const [failed, worksAgain] = [
      { event: 'queue.confirms-nothing', lane },
      { event: 'queue.confirms-again', lane },
    ];
    return new RepeatedFailures(this.logger, { failed, worksAgain });
  });
  private stopLooking: (() => void) | undefined;
  private readonly consumers = new Set<RabbitMqConsumer>();
  private readonly createdListeners: (() => void)[] = [];
  private readonly notReachedSince = new Map<Lane, number>();
  private readonly now: () => number;
  private readonly foreignReaders: ForeignReaders;
  private isBlocked = false;
  /** The last of a message, on a connection that was ready and has others confirmed. */
  private lastRefused: { error: unknown; at: number } | undefined;

  constructor(
    url: string,
    prefix: string,
    maxLength: number,
    private readonly options: RabbitMqOptions = {},
  ) {
    super();
    requireTlsFiles(url);
    this.declarations = topology(prefix, maxLength);
    this.now = options.now ?? (() => performance.now());
    this.foreignReaders = new ForeignReaders(this.logger, this.now);
    this.unconfirmed = perLane(() => new UnconfirmedChunks(this.now));
    this.publishing = new RabbitMqConnection(
      url,
      'publishing',
      (model) => this.setUpPublisher(model),
      () => this.losePublisher(),
      this.now,
    );
    this.consuming = new RabbitMqConnection(
      url,
      'consuming',
      (model) => this.setUpConsumers(model),
      () => this.loseConsumers(),
      this.now,
    );
  }

  override async open(): Promise<void> {
    // An answer that has come while the process was busy is read before the look.
    const repeat = this.options.everySecond ?? everySecond;
    this.stopLooking ??= repeat(() => {
      this.publishing.look();
      this.consuming.look();
      setImmediate(() => this.refuseOverdue());
    });
    await Promise.all([this.publishing.open(), this.consuming.open()]);
  }

  override get trouble(): unknown {
    const { trouble } = this.publishing;
    return (
      // Without the connection that a message has ended, for the moment in which it is made anew: all else goes on.
      (trouble === this.lastRefused?.error ? undefined : trouble) ??
      this.consuming.trouble ??
      (this.isBlocked ? new Error('blocked by an alarm') : undefined) ??
      lanes.filter((lane) => this.unconfirmed[lane].isTrouble).map((lane) => new LaneSilent(lane))[0]
    );
  }

  override get refusal(): unknown {
    const { lastRefused } = this;
    return lastRefused && this.now() - lastRefused.at < refusedForMs ? lastRefused.error : undefined;
  }

  override get brokerVersion(): string | undefined {
    return this.publishing.serverVersion ?? this.consuming.serverVersion;
  }

  /** Of deliveries of all lanes together: a lane that is silent keeps nobody else's from being handed out. */
  get isAccepting(): boolean {
    return (
      lanes.some((lane) => this.accepts(lane)) &&
      lanes.every((lane) => this.unconfirmed[lane].isSilent || this.accepts(lane))
    );
  }

  override accepts(lane: Lane): boolean {
    return this.publishing.isReady && !this.isBlocked && this.unconfirmed[lane].isAccepting;
  }

  override isSilent(lane: Lane): boolean {
    return this.unconfirmed[lane].isSilent;
  }

  override get fullLanes(): readonly Lane[] {
    return lanes.filter((lane) => this.unconfirmed[lane].isFull);
  }

  publish(lane: Lane, chunk: Chunk): Promise<PublishOutcome> {
    const channel = this.publishers?.[lane];
    const unconfirmed = this.unconfirmed[lane];
    if (!channel || this.isBlocked || !unconfirmed.hasRoom) return Promise.resolve('refused');
    return new Promise((resolve) => {
      // It may have been refused before: it was overdue, or the connection was lost or blocked.
      const settle: Settle = (outcome) => {
        if (unconfirmed.take(settle, outcome)) resolve(outcome);
      };
      unconfirmed.add(settle);
      try {
        const hasRoom = channel.publish(
          '',
          this.nameOf(lane),
          encodeChunk(chunk),
          { persistent: true },
          (error: unknown) => {
            if (isAnswer(error) && unconfirmed.heard(settle, Boolean(error))) this.confirms[lane].worked();
            settle(error ? 'refused' : 'confirmed');
          },
        );
        if (!hasRoom) unconfirmed.isBufferFull = true;
      } catch {
        settle('refused'); // the channel has closed in the meantime
      }
    });
  }

  async consume(lane: Lane, prefetch: number, take: Take): Promise<Consumption> {
    const consumed = { lane, name: this.nameOf(lane), prefetch, take };
    const consumer = new RabbitMqConsumer(consumed, this.consuming);
    this.consumers.add(consumer);
    const model = this.consumingModel;
    if (model) {
      await answered(model, consumer.start(model)).catch((error: unknown) => {
        // The connection was lost meanwhile, or is closed now; the next one starts every consumer.
        this.logger.warn({ event: 'rabbitmq.consumer-not-started', lane, error });
        this.consuming.abandon(model, error);
      });
    }
    const forget = () => void this.consumers.delete(consumer);
    return { stop: () => consumer.stop().finally(forget), giveBack: () => consumer.giveBack().finally(forget) };
  }

  async depth(lane: Lane): Promise<number> {
    const model = this.consumingModel;
    if (!model) throw new Error('RabbitMQ is not connected', { cause: this.consuming.trouble });
    const channel = await answered(model, model.createChannel());
    channel.on('error', () => {});
    try {
      const name = this.nameOf(lane);
      const { messageCount, consumerCount } = await answered(channel, channel.checkQueue(name));
      this.foreignReaders.note(lane, name, consumerCount, this.options.workers?.() ?? Infinity);
      if (messageCount + consumerCount > 0 || !this.options.isWorkerAlive?.()) {
        this.notReachedSince.delete(lane);
        return messageCount;
      }
      const since = this.notReachedSince.get(lane) ?? this.now();
      this.notReachedSince.set(lane, since);
      throw new QueueNotReached(name, this.now() - since);
    } finally {
      await close(channel);
    }
  }

  onCreated(listener: () => void): void {
    this.createdListeners.push(listener);
  }

  async close(): Promise<void> {
    this.stopLooking?.();
    // A delivery confirmed now need not be handed out again; a broker that is gone confirms none.
    const { publishers } = this;
    if (publishers) {
      const waitedFor = lanes.filter((lane) => !this.isBlocked && this.unconfirmed[lane].size > 0);
      await Promise.race([
        Promise.all(waitedFor.map((lane) => publishers[lane].waitForConfirms().catch(() => {}))),
        new Promise((resolve) => setTimeout(resolve, 2000).unref()),
      ]);
      await Promise.all(lanes.map((lane) => close(publishers[lane], stoppingMs)));
    }
    await Promise.all([this.publishing.close(), this.consuming.close()]);
  }

  private async declareOn(model: ChannelModel): Promise<void> {
    if (!(await declare(() => model.createChannel(), this.declarations))) return;
    this.logger.log({ event: 'queue.created' });
    for (const listener of this.createdListeners) listener();
  }

  private nameOf(lane: Lane): string {
    return this.declarations.find((declaration) => declaration.lane === lane)!.name;
  }

  private async setUpPublisher(model: ChannelModel): Promise<void> {
    const blocked = new Promise<void>((resolve) => {
      model.on('blocked', (reason: string) => {
        this.logger.warn({ event: 'rabbitmq.blocked', reason });
        this.isBlocked = true;
        this.refuseUnconfirmed();
        resolve();
      });
    });
    model.on('unblocked', () => {
      this.logger.log({ event: 'rabbitmq.unblocked' });
      this.isBlocked = false;
    });
    await this.declareOn(model);
    const channels: ConfirmChannel[] = [];
    for (const lane of lanes) channels.push(await this.openPublisher(model, lane));
    // Until it is known that this user may publish, nothing is taken out of the ledger for this connection, and those
    // that follow it come less often.
    await Promise.race([tryPublishing(channels[0]!), blocked]);
    this.publishers = perLane((lane) => channels[lanes.indexOf(lane)]!);
    this.publishingModel = model;
  }

  private async openPublisher(model: ChannelModel, lane: Lane): Promise<ConfirmChannel> {
    const channel = await model.createConfirmChannel();
    channel.on('drain', () => (this.unconfirmed[lane].isBufferFull = false));
    // Without the channel the connection is of no use; the next one opens all.
    channel.on('error', (error: unknown) => {
      if (this.publishing.isReady && isTooLarge(error)) this.lastRefused = { error, at: this.now() };
      this.publishing.abandon(model, error);
    });
    return channel;
  }

  private losePublisher(): void {
    this.publishers = undefined;
    this.isBlocked = false;
    for (const lane of lanes) this.unconfirmed[lane].isBufferFull = false;
    this.refuseUnconfirmed();
  }

  private refuseUnconfirmed(): void {
    for (const lane of lanes) this.unconfirmed[lane].refuseAll();
  }

  /** A broker that is there does not confirm for a queue that has lost its majority; waiting for it would stop all. */
  private refuseOverdue(): void {
    for (const lane of lanes) {
      const unconfirmed = this.unconfirmed[lane];
      if (!unconfirmed.look()) continue;
      const silent = new LaneSilent(lane);
      this.confirms[lane].failed(silent, { queue: this.nameOf(lane) });
      if (unconfirmed.blocksOthers && this.publishingModel) this.publishing.abandon(this.publishingModel, silent);
    }
  }

  private async setUpConsumers(model: ChannelModel): Promise<void> {
    await this.declareOn(model); // the publishing connection may not have declared them yet
    this.consumingModel = model;
    // A copy: a consumer that is added from now on finds the connection and starts by itself.
    for (const consumer of [...this.consumers]) await consumer.start(model);
  }
  private loseConsumers(): void {
    this.consumingModel = undefined;
    for (const consumer of this.consumers) consumer.lose();
  }
}
