import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import type { Settings } from '../../src/config/settings.js';
import { InProcessAttemptStates } from '../../src/delivery/attempt-states.in-process.js';
import { DeliverService } from '../../src/delivery/deliver.service.js';
import { DeliveryModule } from '../../src/delivery/delivery.module.js';
import { Sender } from '../../src/delivery/sender.service.js';
import { Worker } from '../../src/delivery/worker.service.js';
import { Dispatcher } from '../../src/dispatching/dispatcher.service.js';
import { Enqueuer } from '../../src/enqueueing/enqueuer.service.js';
import { PostgresIdempotencyStore } from '../../src/idempotency/idempotency-store.postgres.js';
import { Idempotency } from '../../src/idempotency/idempotency.service.js';
import type { Clock } from '../../src/infra/clock.js';
import { Heartbeat } from '../../src/infra/postgres/heartbeat.service.js';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import { Leases } from '../../src/ledger/leases.service.js';
import { Ledger } from '../../src/ledger/ledger.service.js';
import { PartitionKeeper } from '../../src/ledger/partition-keeper.service.js';
import { PublishService } from '../../src/publishing/publish.service.js';
import type { Publication } from '../../src/publishing/publication.js';
import { InProcessDeliveryQueue } from '../../src/queue/delivery-queue.in-process.js';
import { RetryPolicies } from '../../src/retry-policy/retry-policies.service.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import { seenBy, type Gates } from './gates.js';
import { ModelQueue, type ModelBroker } from './model-queue.js';
import { ModelWebhookClient, type ModelReceiver } from './model-receiver.js';

/** What all processes share. */
export interface Surroundings {
  postgres: Postgres;
  settings: Settings;
  clock: Clock;
  gates: Gates;
  receiver: ModelReceiver;
  /** Undefined: the queue is each process's memory. */
  broker: ModelBroker | undefined;
}

type State = 'running' | 'frozen' | 'stopping' | 'ended';

/** One process with every role: the program's own services, on ports the model plays with. */
export class ModelProcess {
  state: State = 'running';
  readonly subscriptions: SubscriptionsService;
  readonly ledger: Ledger;
  private readonly catalogue: Catalogue;
  private readonly heartbeat: Heartbeat;
  private readonly publishing: PublishService;
  private readonly dispatcher: Dispatcher;
  private readonly worker: Worker;
  private readonly onDuty = new Set<string>();

  private constructor(
    readonly number: number,
    private readonly around: Surroundings,
  ) {
    const { settings, clock, gates, receiver, broker } = around;
    const config = { settings };
    const postgres = seenBy(this, around.postgres, gates);
    const heartbeat = new Heartbeat(postgres, config, clock);
    const catalogue = new Catalogue(postgres);
    const directory = new SubscriptionDirectory(catalogue, postgres);
    const subscriptions = new SubscriptionsService(catalogue, directory);
    const policies = new RetryPolicies(postgres, catalogue, subscriptions);
    const ledger = new Ledger(postgres, new PartitionKeeper(around.postgres, config), heartbeat, config);
    const leases = new Leases(postgres, heartbeat, config);
    new DeliveryModule(subscriptions, ledger);
    const queue = broker ? new ModelQueue(broker, number) : new InProcessDeliveryQueue(heartbeat.processId, 1000);
    const enqueuer = new Enqueuer(queue, leases, heartbeat);
    const webhooks = new ModelWebhookClient(receiver, number);
    const attemptStates = new InProcessAttemptStates();
    const sender = new Sender(config, clock, heartbeat, catalogue, policies, webhooks, attemptStates);
    const idempotency = new Idempotency(new PostgresIdempotencyStore(postgres), heartbeat);
    const deliver = new DeliverService(config, heartbeat, subscriptions, ledger, leases, sender, idempotency);
    this.worker = new Worker(config, queue, catalogue, ledger, leases, heartbeat, deliver, webhooks);
    this.dispatcher = new Dispatcher(leases, queue, enqueuer, heartbeat);
    this.publishing = new PublishService(catalogue, directory, ledger, enqueuer);
    Object.assign(this, { subscriptions, ledger, catalogue, heartbeat });
  }

  static async start(number: number, around: Surroundings): Promise<ModelProcess> {
    const process = new ModelProcess(number, around);
    await process.heartbeat.onApplicationBootstrap();
    await process.catalogue.refresh();
    await process.worker.onApplicationBootstrap();
    return process;
  }

  /** Not frozen, not dead: its next steps may come. */
  get mayGo(): boolean {
    return this.state === 'running' || this.state === 'stopping';
  }

  publish(publication: Publication): void {
    this.publishing.publish(publication).catch(() => {}); // the publisher was told, and what was committed all the same counts
  }

  /** As the dispatch loop does: never twice at once, and a round that failed is followed by another. */
  perform(duty: 'dispatch' | 'recover'): void {
    if (this.state !== 'running' || this.onDuty.has(duty)) return;
    this.onDuty.add(duty);
    (duty === 'dispatch' ? this.dispatcher.dispatchDue() : this.dispatcher.recover())
      .catch(() => {})
      .finally(() => this.onDuty.delete(duty));
  }

  /** SIGSTOP. */
  freeze(): void {
    if (this.state === 'running') this.state = 'frozen';
  }

  thaw(): void {
    if (this.state === 'frozen') this.state = 'running';
  }

  /** SIGTERM. */
  stop(): void {
    if (this.state !== 'running') return;
    this.state = 'stopping';
    void this.worker
      .onModuleDestroy()
      .then(() => this.heartbeat.stop())
      .catch(() => {})
      .then(() => this.kill());
  }

  /** SIGKILL. */
  kill(): void {
    const { gates, receiver, broker } = this.around;
    this.state = 'ended';
    gates.close(this.number);
    receiver.end(this.number);
    broker?.end(this.number);
  }
}
