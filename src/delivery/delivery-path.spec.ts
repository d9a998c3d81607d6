import { describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { Tally } from '../activity/tally.js';
import type { Config } from '../config/config.module.js';
import { verbatim } from '../credentials/credentials.js';
import { readSettings } from '../config/settings.js';
import { Admission } from '../endpoints/admission.service.js';
import { HoldRule } from '../endpoints/hold-rule.service.js';
import type { OpenEndpoints } from '../endpoints/open-endpoints.service.js';
import { IdempotencyStore, type LockAnswer } from '../idempotency/idempotency-store.js';
import { Idempotency } from '../idempotency/idempotency.service.js';
import { systemClock } from '../infra/clock.js';
import type { SendingClaims } from '../ledger/claim-sending.service.js';
import type { Settlement, Settlements } from '../ledger/settle.service.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { Chunk } from '../queue/chunk.js';
import { InProcessDeliveryQueue } from '../queue/delivery-queue.in-process.js';
import { defaultRetryPolicy } from '../retry-policy/retry-schedule.js';
import type { DeliveryGuarantee, Subscription } from '../subscriptions/subscription.js';
import type { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import { AttemptReporter } from './attempt-reporter.service.js';
import { InProcessAttemptStates } from './attempt-states.in-process.js';
import { LargeBodies } from './large-bodies.js';
import type { ChunkLoader } from './chunk-loader.service.js';
import { Decider } from './decider.service.js';
import { DeliveryRecords } from './delivery-records.service.js';
import { DeliverService } from './deliver.service.js';
import { LateLocks } from './late-locks.service.js';
import { BodyMemory } from './body-memory.js';
import { Sender } from './sender.service.js';
import { WebhookClient } from './webhook-client.js';
import type { Turns } from './turns.service.js';
import { Worker } from './worker.service.js';
import { answered } from '../../test/support/responses.js';
import { newDelivery } from '../../test/support/new-delivery.js';
import { noListeners } from '../../test/support/no-listeners.js';
import { eventually } from '../../test/support/eventually.js';
import { unpaced } from '../../test/support/unpaced.js';
import { untraced } from '../../test/support/untraced.js';

Logger.overrideLogger(false);

const delivery = newDelivery({ body: Buffer.from('{}') });

/** Answers as a store does that is far away: after a moment. */
class FreeStore extends IdempotencyStore {
  readonly calls: string[] = [];
  private async answer<T>(call: string, answer: T): Promise<T> {
    this.calls.push(call);
    return new Promise((resolve) => setImmediate(() => resolve(answer)));
  }
  acquire = () => this.answer<LockAnswer>('acquire', { kind: 'acquired', takenOver: false });
  extend = () => this.answer('extend', true);
  seal = () => this.answer('seal', true);
  release = () => this.answer('release', true);
  announce = () => Promise.resolve();
  withdraw = () => Promise.resolve();
  forget = () => Promise.resolve();
  sweep = () => Promise.resolve(0);
}

/**
 * One delivery taken from the queue by a worker: the stack trace at the call to the receiver, and the steps on the way.
 */
async function play(
  guarantee: DeliveryGuarantee,
  isHandedOver = false,
): Promise<{ frames: string[]; steps: string[] }> {
  const config: Config = { settings: readSettings({}) };
  const store = new FreeStore();
  const steps = store.calls;
  let frames: string[] = [];
  class Client extends WebhookClient {
    post = () => {
      frames = framesHere();
      steps.push('post');
      return Promise.resolve(answered(204));
    };
    abandonAll = () => {};
    close = () => Promise.resolve();
  }
  const subscription: Partial<Subscription> = {
    callbackUrl: 'http://receiver/',
    auth: '',
    credentials: verbatim,
    unreadable: null,
    ownerClientId: 'owner',
    deliveryGuarantee: guarantee,
    timeoutSeconds: null,
    maxConcurrency: null,
    ratePerSecond: null,
    signingKeys: [],
  };
  const heartbeat = { processId: 'process', isSteady: true } as unknown as Heartbeat;
  const ledgerClock = { now: () => Date.now() } as LedgerClock;
  const reporter = new AttemptReporter(new InProcessAttemptStates(), ledgerClock, noListeners, new Tally(), config);
  const client = new Client();
  const none = {} as never;
  const turns = { passOn: () => {} } as unknown as Turns;
  const noneOpen = { of: () => undefined, all: new Map() } as unknown as OpenEndpoints;
  const admission = new Admission(config, new HoldRule(noneOpen), noneOpen, ledgerClock, systemClock);
  const inHand = { keep: () => Promise.resolve() } as never;
  const finished = new Promise<void>((resolve) => {
    const claims = {
      claim: async () => (steps.push('claim'), true),
      forget: () => void steps.push('forget'),
    } as unknown as SendingClaims;
    const settle = async ({ state, from }: Settlement) => {
      steps.push(`settle ${from} → ${state}`);
    };
    const idempotency = new Idempotency(store, heartbeat, systemClock);
    const lateLocks = new LateLocks(idempotency, heartbeat, systemClock, ledgerClock, config);
    const deliver = new DeliverService(
      config,
      systemClock,
      { find: () => subscription as Subscription } as unknown as SubscriptionDirectory,
      idempotency,
      admission,
      new Sender(client, none, reporter, untraced, config),
      new Decider(
        { refresh: () => Promise.resolve() } as never,
        { for: () => defaultRetryPolicy } as never,
        ledgerClock,
        reporter,
        config,
      ),
      new DeliveryRecords(systemClock, { settle } as unknown as Settlements, none, claims, inHand, none, turns, config),
      lateLocks,
    );
    const queue = new InProcessDeliveryQueue('process', 10);
    let handOver: (chunk: Chunk) => Promise<void>;
    const handingOver = {
      consume: (take: typeof handOver) => ((handOver = take), { stop: () => Promise.resolve() }),
      occupy: () => () => {},
    } as never;
    const bodies = new LargeBodies(new Map(), new BodyMemory(1, { origin: 1, unproven: 1, unprovenOrigin: 1 }), () =>
      Promise.resolve(undefined),
    );
    const loader = { load: async () => ({ deliveries: [delivery], bodies }) } as unknown as ChunkLoader;
    const progress = { take: () => {}, finish: () => resolve() } as never;
    const worker = new Worker(
      systemClock,
      queue,
      handingOver,
      unpaced,
      progress,
      loader,
      deliver,
      admission,
      inHand,
      client,
      heartbeat,
      ledgerClock,
      untraced,
    );
    void worker.onApplicationBootstrap().then(() => {
      const chunk = { catalogueVersion: 0, queuedAt: Date.now(), deliveries: [delivery] };
      if (isHandedOver) void handOver(chunk).then(resolve);
      else void queue.publish('due', chunk);
    });
  });
  await finished;
  // A delivery that takes the worker long, as on a machine that stood still, is settled after its message is forgotten.
  const last = guarantee === 'at-most-once' ? 'forget' : 'settle';
  await eventually(() => steps.at(-1)?.startsWith(last), 'all of it to be done');
  return { frames, steps };
}

/** The program's own frames that lead here, as V8 has them: the source maps of the test runner would rename them. */
function framesHere(): string[] {
  const { prepareStackTrace, stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = 50;
    Error.prepareStackTrace = (_, sites) => sites;
    const sites = new Error('here').stack as unknown as NodeJS.CallSite[];
    return sites
      .filter((site) => /\/src\/(?!.*\.spec\.)/.test(site.getFileName() ?? ''))
      .map((site) => `${site.getTypeName()}.${site.getFunctionName()}`);
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  }
}

describe('the way of a delivery', () => {
  it('is at most six frames, from the worker to the webhook client', async () => {
    const { frames } = await play('at-least-once');
    expect(frames).toEqual([
      'Sender.send',
      'DeliverService.call',
      'DeliverService.atLeastOnce',
      'DeliverService.deliver',
      'Worker.deliver',
    ]);
  });

  it('has the same form where it may be sent once at most', async () => {
    const { frames } = await play('at-most-once');
    expect(frames).toEqual([
      'Sender.send',
      'DeliverService.call',
      'DeliverService.atMostOnce',
      'DeliverService.deliver',
      'Worker.deliver',
    ]);
  });

  it('is send, settle where this process has just accepted it', async () => {
    const { frames, steps } = await play('at-least-once', true);
    expect(frames).toEqual([
      'Sender.send',
      'DeliverService.call',
      'DeliverService.underLease',
      'DeliverService.deliver',
      'Worker.deliver',
    ]);
    expect(steps).toEqual(['post', 'settle queued → delivered']);
  });

  const claimed = ['claim', 'post', 'settle sending → delivered', 'forget'];

  it('is claim, send, settle, and then to forget the claim, at most once also where this process has just accepted it', async () => {
    expect((await play('at-most-once', true)).steps).toEqual(claimed);
  });

  it('is lock, send, seal, settle at least once', async () => {
    expect((await play('at-least-once')).steps).toEqual(['acquire', 'post', 'seal', 'settle queued → delivered']);
  });

  it('is claim, send, settle, and then to forget the claim, at most once', async () => {
    expect((await play('at-most-once')).steps).toEqual(claimed);
  });
});
