import type { Settings } from '../../src/config/settings.js';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import { statement } from '../../src/infra/postgres/statement.js';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { PartitionKeeper } from '../../src/ledger/partition-keeper.service.js';
import type { HandOverLimits } from '../../src/queue/hand-over.service.js';
import type { Action, PublishTerms } from './actions.js';
import { demand } from './delivery-rows.js';
import { Gates } from './gates.js';
import { Judge, type WorldTally } from './judge.js';
import { ModelBroker } from './model-queue.js';
import { modelTasks, ModelProcess, type Surroundings } from './model-process.js';
import { ModelSupervisor } from './model-supervisor.js';
import { Operator } from './operator.js';
import { VirtualTime } from '../support/virtual-time.js';

export const subscriptionsPerGuarantee = 2;
const maxNotifications = 5;
const healingRounds = 400;
/**
 * After a longer step a process that lives has not beaten for so long that it cannot show that another one is dead
 * (src/liveness).
 */
const healingStepsMs = [20, 300, 1000, 2500];
/** Enough for every short lease, lock, claim, hold, probe and retry of a run to end one after another. */
export const healingMs = (healingRounds / healingStepsMs.length) * healingStepsMs.reduce((sum, each) => sum + each);

export interface Installation {
  hasBroker: boolean;
  processes: number;
  handOver: HandOverLimits;
}

/** A few processes, their database, queue and receivers, and the faults they may meet. */
export class World {
  private readonly slots: ModelProcess[] = [];
  private started = 0;
  private readonly around: Surroundings;
  private readonly operator: Operator;
  private readonly judge: Judge;
  /** The events so far, for the message of a failure. */
  readonly story: string[] = [];

  private constructor(
    postgres: Postgres,
    settings: Settings,
    private readonly time: VirtualTime,
    { hasBroker, handOver }: Installation,
  ) {
    this.judge = new Judge(postgres, time, this.story);
    const { publications, calls, claims, receiver, restraint } = this.judge;
    const gates = new Gates(
      (process, what, fate) => {
        calls.stepped(process, what, fate);
        publications.stepped(process, fate);
      },
      (process, what, rows) => {
        restraint.answered(process, what, rows);
        claims.answered(process, what, rows);
      },
    );
    const broker = hasBroker ? new ModelBroker(gates) : undefined;
    const supervisor = new ModelSupervisor();
    this.around = {
      postgres,
      settings,
      clock: time,
      gates,
      receiver,
      calls,
      claims,
      restraint,
      broker,
      supervisor,
      handOver,
    };
    this.operator = new Operator(postgres, this.judge);
  }

  /** A new world in an emptied database. */
  static async create(
    postgres: Postgres,
    settings: Settings,
    time: VirtualTime,
    installation: Installation,
  ): Promise<World> {
    time.forget();
    await new PartitionKeeper(postgres).makeAhead();
    await makeMonthsAhead(postgres);
    await VirtualTime.adoptTables(postgres);
    for (const table of [
      'delivery',
      'notification',
      'attempt',
      'idempotency_key',
      'process',
      'lane_progress',
      'queue_creation',
      'held_subscription',
      'held_drop',
      'replay',
      'endpoint',
      'turn',
      'in_line',
      'order_ending',
      'subscription_ending',
      'subscription',
    ]) {
      await postgres.query(statement(`empty-${table}`, `DELETE FROM ${table}`));
    }
    const world = new World(postgres, settings, time, installation);
    await world.operator.setUp();
    // The second of each kind keeps order.
    for (const guarantee of ['at-least-once', 'at-most-once'] as const)
      for (let i = 0; i < subscriptionsPerGuarantee; i++) await world.operator.subscribe(guarantee, i === 1);
    for (let i = 0; i < installation.processes; i++) world.slots.push(await world.startProcess());
    await world.around.gates.quiet();
    return world;
  }

  async play(action: Action): Promise<void> {
    this.story.push(JSON.stringify(action));
    const { gates } = this.around;
    const { worked } = gates;
    await this.act(action);
    await gates.quiet();
    const isChanged = gates.worked !== worked || this.judge.calls.areNew;
    if (isChanged || ['operate', 'subscription', 'bulk', 'reset'].includes(action.do)) await this.judge.look();
    await this.restart();
  }

  /** Without further faults, and with every receiver answering, lets time pass until there is nothing left to do. */
  async heal(): Promise<void> {
    const { gates, receiver, broker, supervisor } = this.around;
    this.story.push('healing');
    this.thaw();
    let calmRounds = 0;
    for (let round = 0; round < healingRounds; round++) {
      await this.operator.resumeAll();
      const process = this.slot(round);
      for (const task of modelTasks) process.perform(task);
      await this.finish();
      await this.restart();
      const isQuiet = gates.count + receiver.count + supervisor.count + (broker?.count ?? 0) === 0;
      await this.judge.look();
      calmRounds = isQuiet && this.judge.isOver() && (await this.operator.isDone()) ? calmRounds + 1 : 0;
      // Two cycles: in the first a pause after a failure may end, unseen, and in the second the work that it held up.
      if (calmRounds > 2 * healingStepsMs.length) return;
      await this.time.pass(healingStepsMs[round % healingStepsMs.length]!);
      await gates.quiet();
    }
  }

  /** How often each of what has to happen in some of all worlds happened in this one. */
  get tally(): WorldTally & { handedOver: number } {
    return { ...this.judge.tally, handedOver: this.around.supervisor.handedOver };
  }

  /** Checks that every promise was kept. */
  async conclude(): Promise<void> {
    demand(await this.operator.isDone(), 'what an operator began for a selection is done');
    this.judge.conclude(new Set(this.slots.filter(({ state }) => state === 'running').map(({ number }) => number)));
  }

  end(): void {
    for (const process of this.slots) process.kill();
  }

  private async finish(): Promise<void> {
    const { gates, receiver, broker, supervisor } = this.around;
    for (;;) {
      await gates.quiet();
      if (this.judge.calls.areNew) await this.judge.look();
      if (gates.count > 0) {
        this.story.push(...(await gates.open(0, 'works', () => true)));
        await this.judge.look();
      } else if (receiver.count > 0) this.story.push(...receiver.event(0, 200));
      else {
        const passed = supervisor.pass(0, () => true);
        this.story.push(...passed);
        if (passed.length === 0 && !this.slots.some(({ number }) => broker?.hand(0, number))) return;
      }
    }
  }

  private async act(action: Action): Promise<void> {
    const { gates, receiver, broker, supervisor, postgres } = this.around;
    switch (action.do) {
      case 'publish':
        return this.publish(this.slot(action.by), action.terms);
      case 'step': {
        this.story.push(...(await gates.open(action.pick, action.fate, this.mayGo, action.count)));
        return;
      }
      case 'hand': {
        const process = this.slot(action.to);
        if (process.state === 'running') broker?.hand(action.pick, process.number);
        return;
      }
      case 'call':
        this.story.push(...receiver.event(action.pick, action.event));
        return;
      case 'message':
        this.story.push(...supervisor.pass(action.pick, this.mayGo, action.isLost));
        return;
      case 'task':
        return this.slot(action.by).perform(action.task);
      case 'pass':
        return this.time.pass(action.ms);
      case 'kill':
        return this.slot(action.process).kill();
      case 'stop':
        return this.slot(action.process).stop();
      case 'freeze':
        return this.slot(action.process).freeze();
      case 'thaw':
        return this.thaw();
      case 'requeue':
        return broker?.requeue(this.slot(action.process).number);
      case 'double':
        return broker?.double(action.pick);
      case 'wipe':
        return broker?.wipe(action.isNoticed);
      case 'forget':
        this.judge.calls.forgotten();
        for (const table of action.tables) {
          await postgres.query(statement(`empty-${table}`, `DELETE FROM ${table}`));
        }
        return;
      case 'operate':
        return this.operator.operate(action.pick, action.verb);
      case 'subscription':
        await this.operator.change(action.pick, action.verb);
        // One that comes to be held at the very moment of the drop may be dropped with the others.
        return action.verb === 'drop-held' ? this.time.pass(1) : undefined;
      case 'bulk':
        return this.operator.begin(action.pick, action.kind, action);
      case 'reset':
        return this.operator.reset(action.pick);
    }
  }

  private publish(process: ModelProcess, { expiresInMs, notBeforeInMs, keepsPlace = false }: PublishTerms): void {
    const { publications, removed } = this.judge;
    if (process.state !== 'running' || publications.count === maxNotifications) return;
    const now = this.time.now();
    const publication = {
      channel: 'cases',
      characteristics: new Map(),
      hoofdObject: 'https://objects.example/1',
      publisher: 'publisher',
      refusalNow: () => undefined,
      terms: {
        request: null,
        content: null,
        notBefore: notBeforeInMs === undefined ? null : now + notBeforeInMs,
        keepsPlace,
        expiresAt: expiresInMs === undefined ? null : now + expiresInMs,
      },
      trace: {},
    };
    publications.make(process, publication, removed);
  }

  private readonly mayGo = (number: number): boolean =>
    this.slots.some((process) => process.number === number && process.mayGo);

  private thaw(): void {
    for (const process of this.slots) process.thaw();
  }

  private slot(pick: number): ModelProcess {
    return this.slots[pick % this.slots.length]!;
  }

  /** Starts ended processes again, as a supervisor would. */
  private async restart(): Promise<void> {
    for (const [slot, process] of this.slots.entries()) {
      if (process.state === 'ended') this.slots[slot] = await this.startProcess();
    }
  }

  private startProcess(): Promise<ModelProcess> {
    return ModelProcess.start(this.started++, this.around);
  }
}
