import { Tally } from '../../src/activity/tally.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import type { Settings } from '../../src/config/settings.js';
import { AttemptReporter } from '../../src/delivery/attempt-reporter.service.js';
import { InProcessAttemptStates } from '../../src/delivery/attempt-states.in-process.js';
import { ChunkLoader } from '../../src/delivery/chunk-loader.service.js';
import { Decider } from '../../src/delivery/decider.service.js';
import { LateLocks } from '../../src/delivery/late-locks.service.js';
import { DeliveryRecords } from '../../src/delivery/delivery-records.service.js';
import { DeliverService } from '../../src/delivery/deliver.service.js';
import { Sender } from '../../src/delivery/sender.service.js';
import { Turns } from '../../src/delivery/turns.service.js';
import { Worker } from '../../src/delivery/worker.service.js';
import { Dispatcher } from '../../src/dispatching/dispatcher.service.js';
import { Releaser } from '../../src/dispatching/releaser.service.js';
import { Admission } from '../../src/endpoints/admission.service.js';
import { HoldRule } from '../../src/endpoints/hold-rule.service.js';
import { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import { PostgresIdempotencyStore } from '../../src/idempotency/idempotency-store.postgres.js';
import { Idempotency } from '../../src/idempotency/idempotency.service.js';
import type { Clock } from '../../src/infra/clock.js';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import { SendingClaims } from '../../src/ledger/claim-sending.service.js';
import type { Delivery } from '../../src/ledger/delivery.js';
import { Holds } from '../../src/ledger/hold.service.js';
import { DeliveriesInHand } from '../../src/ledger/keep-in-hand.service.js';
import { PartitionKeeper } from '../../src/ledger/partition-keeper.service.js';
import { Settlements } from '../../src/ledger/settle.service.js';
import { EndedSiblings } from '../../src/liveness/ended-siblings.service.js';
import { Heartbeat } from '../../src/liveness/heartbeat.service.js';
import { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import { OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import { PublicationReporter } from '../../src/publishing/publication-reporter.service.js';
import { PublishService } from '../../src/publishing/publish.service.js';
import type { Publication, Published } from '../../src/publishing/publication.js';
import { InProcessDeliveryQueue } from '../../src/queue/delivery-queue.in-process.js';
import { Enqueuer } from '../../src/queue/enqueuer.service.js';
import { HandOver, type HandOverLimits } from '../../src/queue/hand-over.service.js';
import { QueuePosition } from '../../src/queue/queue-position.service.js';
import { QueueProgress } from '../../src/queue/queue-progress.service.js';
import { ReplayRunner } from '../../src/replays/replay-runner.service.js';
import { RetryPolicies } from '../../src/retry-policy/retry-policies.service.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import type { Calls } from './calls.js';
import type { Claims } from './claims.js';
import { seenBy, type Gates } from './gates.js';
import { ModelQueue, type ModelBroker } from './model-queue.js';
import type { ModelSupervisor } from './model-supervisor.js';
import { ModelWebhookClient, type ModelReceiver } from './model-receiver.js';
import type { Restraint } from './restraint.js';
import { plainCipher } from '../support/secrets.js';
import { Authorizations } from '../../src/credentials/authorizations.service.js';
import { Outbound } from '../../src/outbound/outbound.service.js';
import { noListeners } from '../support/no-listeners.js';
import { unpaced } from '../support/unpaced.js';
import { untraced } from '../support/untraced.js';
import { subscriptionsService } from '../support/subscriptions-service.js';

/** The parts that all processes share. */
export interface Surroundings {
  postgres: Postgres;
  settings: Settings;
  clock: Clock;
  gates: Gates;
  receiver: ModelReceiver;
  calls: Calls;
  claims: Claims;
  restraint: Restraint;
  /** Undefined: the queue is each process's memory. */
  broker: ModelBroker | undefined;
  supervisor: ModelSupervisor;
  handOver: HandOverLimits;
}

export const modelTasks = ['hand-out', 'line-up', 'recover', 'release', 'replay', 'read-endpoints'] as const;
export type ModelTask = (typeof modelTasks)[number];

type State = 'running' | 'frozen' | 'stopping' | 'ended';

/** One process with every role: the program's own services, on ports the model plays with. */
export class ModelProcess {
  state: State = 'running';
  private readonly catalogue: Catalogue;
  private readonly heartbeat: Heartbeat;
  private readonly endedSiblings: EndedSiblings;
  private readonly publishing: PublishService;
  private readonly dispatcher: Dispatcher;
  private readonly releaser: Releaser;
  private readonly replays: ReplayRunner;
  private readonly progress: QueueProgress;
  private readonly worker: Worker;
  private readonly openEndpoints: OpenEndpoints;
  private readonly admission: Admission;
  private readonly lateLocks: LateLocks;
  private readonly stopping = new AbortController();
  private readonly running = new Set<string>();

  private constructor(
    readonly number: number,
    private readonly around: Surroundings,
  ) {
    const { settings, clock, gates, receiver, broker, supervisor } = around;
    const config = { settings };
    const postgres = seenBy(this, around.postgres, gates);
    const ledgerClock = new LedgerClock(postgres, clock);
    const heartbeat = new Heartbeat(postgres, config, clock, ledgerClock);
    const catalogue = new Catalogue(postgres);
    const directory = new SubscriptionDirectory(catalogue, postgres, plainCipher);
    const events = new OperationalEvents();
    const subscriptions = subscriptionsService(catalogue, directory, postgres, events, plainCipher);
    const policies = new RetryPolicies(postgres, catalogue);
    const queue = broker
      ? new ModelQueue(broker, number)
      : new InProcessDeliveryQueue(heartbeat.processId, 1000, clock);
    const enqueuer = new Enqueuer(queue, postgres, heartbeat, ledgerClock);
    const siblings = supervisor.siblingsOf(number);
    const handOver = new HandOver(enqueuer, heartbeat, ledgerClock, unpaced, siblings, around.handOver, () =>
      clock.now(),
    );
    this.endedSiblings = new EndedSiblings(siblings, heartbeat);
    const position = new QueuePosition(queue, postgres, ledgerClock, clock);
    const webhooks = new ModelWebhookClient(receiver, number);
    const reporter = new AttemptReporter(new InProcessAttemptStates(), ledgerClock, noListeners, new Tally(), config);
    const inHand = new DeliveriesInHand(postgres, heartbeat, config);
    this.openEndpoints = new OpenEndpoints(postgres, events);
    around.restraint.started(number, () => this.openEndpoints.all);
    const holdRule = new HoldRule(this.openEndpoints);
    this.admission = new Admission(config, holdRule, this.openEndpoints, ledgerClock, clock);
    const claims = new HeardClaims(postgres, heartbeat, number, around.claims);
    const settlements = new Settlements(postgres, events);
    const holds = new Holds(postgres);
    const turns = new Turns(directory, postgres, enqueuer);
    const records = new DeliveryRecords(clock, settlements, holds, claims, inHand, subscriptions, turns, config);
    const idempotency = new Idempotency(new PostgresIdempotencyStore(postgres), heartbeat, clock);
    this.lateLocks = new LateLocks(idempotency, heartbeat, clock, ledgerClock, config);
    const deliver = new DeliverService(
      config,
      clock,
      directory,
      idempotency,
      this.admission,
      new Sender(webhooks, new Authorizations(new Outbound(settings), clock, ledgerClock), reporter, untraced, config),
      new Decider(catalogue, policies, ledgerClock, reporter, config),
      records,
      this.lateLocks,
    );
    const loader = new ChunkLoader(catalogue, postgres, ledgerClock);
    const partitions = new PartitionKeeper(around.postgres);
    this.catalogue = catalogue;
    this.heartbeat = heartbeat;
    this.progress = new QueueProgress(postgres, heartbeat);
    this.worker = new Worker(
      clock,
      queue,
      handOver,
      unpaced,
      this.progress,
      loader,
      deliver,
      this.admission,
      inHand,
      webhooks,
      heartbeat,
      ledgerClock,
      untraced,
    );
    this.dispatcher = new Dispatcher(postgres, enqueuer, position, events, ledgerClock, clock);
    this.publishing = new PublishService(
      catalogue,
      directory,
      holdRule,
      postgres,
      partitions,
      handOver,
      ledgerClock,
      new PublicationReporter(noListeners, events, new Tally()),
      config,
    );
    this.replays = new ReplayRunner(postgres, catalogue, directory, holdRule, config);
    this.releaser = new Releaser(
      postgres,
      enqueuer,
      directory,
      this.openEndpoints,
      ledgerClock,
      catalogue,
      clock,
      config,
    );
  }

  static async start(number: number, around: Surroundings): Promise<ModelProcess> {
    const process = new ModelProcess(number, around);
    await process.heartbeat.onApplicationBootstrap();
    process.endedSiblings.onApplicationBootstrap();
    await process.catalogue.refresh();
    process.progress.onApplicationBootstrap();
    process.admission.onApplicationBootstrap();
    await process.worker.onApplicationBootstrap();
    return process;
  }

  /** Not frozen, not dead: its next steps may come. */
  get mayGo(): boolean {
    return this.state === 'running' || this.state === 'stopping';
  }

  /** Never answered where it is killed before. */
  publish(publication: Publication): Promise<Published> {
    return this.publishing.publish(publication);
  }

  /** As the dispatch loop does: never twice at once, and a round that failed is followed by another. */
  perform(task: ModelTask): void {
    if (this.state !== 'running' || this.running.has(task)) return;
    this.running.add(task);
    const { signal } = this.stopping;
    const round = {
      'hand-out': () => this.dispatcher.handOutDue(signal),
      'line-up': () => this.dispatcher.lineUp(signal),
      recover: () => this.dispatcher.recover(signal),
      release: () => this.releaser.releaseHeld(signal),
      replay: () => this.replays.stepAll(signal),
      // A process polls for this each second.
      'read-endpoints': () => this.openEndpoints.refresh(),
    }[task]();
    Promise.resolve(round).then(
      () => this.running.delete(task),
      () => this.running.delete(task),
    );
  }

  /** SIGSTOP. */
  freeze(): void {
    if (this.state !== 'running') return;
    this.state = 'frozen';
    this.around.claims.hasStoodStill(this.number);
  }

  thaw(): void {
    if (this.state === 'frozen') this.state = 'running';
  }

  /** SIGTERM. */
  stop(): void {
    if (this.state !== 'running') return;
    this.state = 'stopping';
    this.stopping.abort();
    this.progress.onModuleDestroy();
    void this.worker
      .onModuleDestroy()
      .then(() => this.heartbeat.stop())
      .catch(() => {})
      .then(() => this.end());
  }

  /** SIGKILL. */
  kill(): void {
    this.around.calls.struck(this.number);
    this.end();
  }

  private end(): void {
    const { gates, receiver, broker, supervisor, claims } = this.around;
    this.state = 'ended';
    claims.hasStoodStill(this.number);
    this.admission.onModuleDestroy();
    this.lateLocks.beforeApplicationShutdown();
    gates.close(this.number);
    receiver.end(this.number);
    broker?.end(this.number);
    supervisor.end(this.number);
  }
}

/** The judge is told of what a process hears of its claims. */
class HeardClaims extends SendingClaims {
  constructor(
    postgres: Postgres,
    heartbeat: Heartbeat,
    private readonly number: number,
    private readonly all: Claims,
  ) {
    super(postgres, heartbeat);
  }

  override async claim(delivery: Delivery, timeoutMs: number): Promise<boolean> {
    const isGiven = await super.claim(delivery, timeoutMs);
    const { notificationId, subscriptionId, generation } = delivery;
    this.all.heard(this.number, `${notificationId} ${subscriptionId}`, generation, isGiven);
    return isGiven;
  }
}
