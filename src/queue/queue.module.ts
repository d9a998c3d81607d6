import { Module, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { LedgerModule } from '../ledger/ledger.module.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { busyPart } from '../infra/busy-part.js';
import { Clock } from '../infra/clock.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { Siblings } from '../supervision/siblings.js';
import { BacklogPace } from './backlog-pace.service.js';
import { DeliveryQueue } from './delivery-queue.js';
import { InProcessDeliveryQueue } from './delivery-queue.in-process.js';
import { RabbitMqDeliveryQueue } from './delivery-queue.rabbitmq.js';
import { Enqueuer, workersOf } from './enqueuer.service.js';
import { HandOver } from './hand-over.service.js';
import { mostInMemory } from './most-in-memory.js';

/** Fewer deliveries than this are sent within 0.1 s; handing them over to a sibling would hardly be sooner. */
const sharedFrom = 512;

/** RabbitMQ where AMQP_URL names one, this process's memory otherwise. */
@Module({
  imports: [LedgerModule],
  providers: [
    {
      provide: DeliveryQueue,
      inject: [Config, Heartbeat],
      useFactory: ({ settings }: Config, heartbeat: Heartbeat): DeliveryQueue =>
        settings.AMQP_URL
          ? new RabbitMqDeliveryQueue(settings.AMQP_URL, settings.QUEUE_PREFIX, settings.QUEUE_MAX_LENGTH, {
              isWorkerAlive: () => heartbeat.isWorkerAlive,
              workers: () => heartbeat.workers,
            })
          : new InProcessDeliveryQueue(heartbeat.processId, settings.QUEUE_MAX_LENGTH),
    },
    Enqueuer,
    {
      provide: BacklogPace,
      inject: [DeliveryQueue, Heartbeat, Clock],
      useFactory: (queue: DeliveryQueue, heartbeat: Heartbeat, clock: Clock) =>
        new BacklogPace(
          heartbeat,
          () => workersOf(queue, heartbeat),
          () => clock.now(),
          busyPart(),
        ),
    },
    {
      provide: HandOver,
      inject: [Enqueuer, Heartbeat, LedgerClock, BacklogPace, Siblings, Config, DeliveryQueue, Clock],
      useFactory: (
        enqueuer: Enqueuer,
        heartbeat: Heartbeat,
        ledgerClock: LedgerClock,
        pace: BacklogPace,
        siblings: Siblings,
        { settings }: Config,
        queue: DeliveryQueue,
        clock: Clock,
      ) => {
        const inMemory = () => mostInMemory(workersOf(queue, heartbeat));
        const limits = { together: settings.MAX_IN_FLIGHT, inMemory, sharedFrom };
        return new HandOver(enqueuer, heartbeat, ledgerClock, pace, siblings, limits, () => clock.now());
      },
    },
  ],
  exports: [DeliveryQueue, Enqueuer, HandOver, BacklogPace],
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
