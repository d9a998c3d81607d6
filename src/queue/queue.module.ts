import { Module, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Heartbeat } from '../infra/postgres/heartbeat.service.js';
import { DeliveryQueue } from './delivery-queue.js';
import { InProcessDeliveryQueue } from './delivery-queue.in-process.js';
import { RabbitMqDeliveryQueue } from './delivery-queue.rabbitmq.js';

/** RabbitMQ where AMQP_URL names one, this process's memory otherwise. */
@Module({
  providers: [
    {
      provide: DeliveryQueue,
      inject: [Config, Heartbeat],
      useFactory: ({ settings }: Config, heartbeat: Heartbeat): DeliveryQueue =>
        settings.AMQP_URL
          ? new RabbitMqDeliveryQueue(settings.AMQP_URL, settings.QUEUE_PREFIX, settings.QUEUE_MAX_LENGTH)
          : new InProcessDeliveryQueue(heartbeat.processId, settings.QUEUE_MAX_LENGTH),
    },
  ],
  exports: [DeliveryQueue],
})
export class QueueModule implements OnApplicationBootstrap, OnApplicationShutdown {
  constructor(private readonly queue: DeliveryQueue) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.queue.open();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.queue.close();
  }
}
