import { Logger } from '@nestjs/common';
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';
import { answered } from '../infra/rabbitmq/answered.js';
import { close, stoppingMs } from '../infra/rabbitmq/close.js';
import type { RabbitMqConnection } from '../infra/rabbitmq/rabbitmq-connection.js';
import type { Chunk } from './chunk.js';
import { decodeChunk } from './chunk-format.js';
import type { Consumption, Lane, Take } from './delivery-queue.js';

class ConsumerCancelled extends Error {
  constructor(lane: Lane) {
    super(`the consumer of the lane ${lane} was cancelled: its queue was deleted, or a message was held for too long`);
  }
}

export interface Consumed {
  lane: Lane;
  /** Of its queue. */
  name: string;
  prefetch: number;
  take: Take;
}

/** Takes the chunks of one lane from RabbitMQ, on a channel of its own, which is opened anew on each connection. */
export class RabbitMqConsumer implements Consumption {
  private readonly logger = new Logger('RabbitMqDeliveryQueue');
  private channel: Channel | undefined;
  private tag: string | undefined;
  private isStopped = false;
  private readonly taken = new Set<Promise<void>>();

  /** @param connection of which another one is made when the channel fails, on which this is started again */
  constructor(
    private readonly consumed: Consumed,
    private readonly connection: Pick<RabbitMqConnection, 'abandon'>,
  ) {}

  async start(model: ChannelModel): Promise<void> {
    if (this.isStopped) return;
    const { lane, name, prefetch } = this.consumed;
    const channel = await model.createChannel();
    channel.on('error', (error: unknown) => {
      if (this.channel === channel) this.connection.abandon(model, error);
    });
    await channel.prefetch(prefetch);
    if (this.isStopped) return close(channel); // meanwhile
    this.channel = channel;
    const { consumerTag } = await channel.consume(name, (message) => {
      // Set up everything again: the queue may have been deleted under the consumer.
      if (!message) this.connection.abandon(model, new ConsumerCancelled(lane));
      else if (this.channel === channel) this.receive(channel, message); // otherwise it has gone back with the channel
    });
    this.tag = consumerTag;
  }

  /** With the connection: the broker has put back what was not acknowledged. */
  lose(): void {
    this.channel = undefined;
    this.tag = undefined;
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    const { channel, tag } = this;
    if (channel && tag !== undefined) await answered(channel, channel.cancel(tag)).catch(() => {});
    await Promise.all(this.taken);
    // Closing the channel before the connection makes sure that the last acks arrive.
    this.channel = undefined;
    if (channel) await close(channel, stoppingMs);
  }

  /**
   * The broker puts back what is not acknowledged on a channel that is closed, after it has forgotten the consumer:
   * nothing comes here again.
   */
  async giveBack(): Promise<void> {
    this.isStopped = true;
    const { channel } = this;
    this.channel = undefined; // from now on nothing is acknowledged
    if (channel) await close(channel);
  }

  private receive(channel: Channel, message: ConsumeMessage): void {
    const work = this.work(channel, message).finally(() => this.taken.delete(work));
    this.taken.add(work);
  }

  private async work(channel: Channel, message: ConsumeMessage): Promise<void> {
    const { lane, take } = this.consumed;
    let chunk: Chunk;
    try {
      chunk = decodeChunk(message.content);
    } catch (error) {
      // It would be unreadable the next time as well. If it was ours, the dispatcher finds that the deliveries are
      // lost.
      this.logger.error({ event: 'queue.chunk-unreadable', lane, error });
      this.answer(channel, () => channel.ack(message));
      return;
    }
    try {
      await take({ chunk, lane, isRedelivered: message.fields.redelivered });
      this.answer(channel, () => channel.ack(message));
    } catch (error) {
      this.logger.error({ event: 'queue.take-failed', lane, error });
      await new Promise((resolve) => setTimeout(resolve, 1000)); // do not spin on a bug
      // Not nack, which the limit on deliveries does not count from RabbitMQ 4.3 on.
      this.answer(channel, () => channel.reject(message, true));
    }
  }

  /** Does nothing on a channel that is closed: the broker has put the message back already. */
  private answer(channel: Channel, give: () => void): void {
    if (this.channel !== channel) return;
    try {
      give();
    } catch (error) {
      this.logger.warn({ event: 'queue.answer-failed', error });
    }
  }
}
