import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { Admission } from '../../src/endpoints/admission.service.js';
import { HoldRule } from '../../src/endpoints/hold-rule.service.js';
import { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import type { Place } from '../../src/endpoints/room.js';
import type { HeldReason } from '../../src/ledger/delivery.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import type { Subscription } from '../../src/subscriptions/subscription.js';
import { newDelivery } from '../support/new-delivery.js';
import { openVirtualLedger, type VirtualLedger } from '../support/virtual-ledger.js';

const address = 'http://receiver.example';
const subscription = {
  id: randomUUID(),
  callbackUrl: `${address}/hook`,
  credentials: {},
  maxConcurrency: null,
  pausedAt: null,
  ratePerSecond: null,
} as Subscription;
const delivery = () => newDelivery({ notificationId: randomUUID(), subscriptionId: subscription.id });
/** Claims and ends of probes are written together with those that come within this time. */
const lingerMs = 25;

/** The part of a worker that says whether a delivery may be sent. */
class TestWorker {
  readonly openEndpoints: OpenEndpoints;
  readonly admission: Admission;
  private readonly keeping;

  constructor(private readonly ledger: VirtualLedger) {
    const { test, time } = ledger;
    const ledgerClock = { now: () => time.now() } as LedgerClock;
    this.openEndpoints = new OpenEndpoints(test.postgres, test.events);
    this.admission = new Admission(
      test.config,
      new HoldRule(this.openEndpoints),
      this.openEndpoints,
      ledgerClock,
      time,
    );
    this.keeping = vi.spyOn(this.openEndpoints, 'keepProbes');
    this.admission.onApplicationBootstrap();
  }

  /** Asks for a delivery that is due. */
  async enter(): Promise<Place | HeldReason> {
    await this.openEndpoints.refresh();

    return this.written(Promise.resolve(this.admission.enter(delivery(), subscription, false)));
  }

  /** Its call was not answered. */
  async end(place: Place): Promise<void> {
    this.admission.leave(place, { kind: 'none' }, 60_000, delivery());
    const ending = vi.spyOn(this.openEndpoints, 'endProbe');
    this.admission.giveBack(place);
    await this.written(Promise.all(ending.mock.results.map(({ value }) => value as Promise<void>)));
  }

  async written<T>(promise: Promise<T>): Promise<T> {
    await this.ledger.time.pass(lingerMs);
    return promise;
  }

  /** Resolves when the ledger has what it has asked for to keep its probes. */
  async hasKept(): Promise<void> {
    await Promise.all(this.keeping.mock.results.map(({ value }) => value as Promise<void>));
  }

  kill(): void {
    this.admission.onModuleDestroy();
  }
}

describe('the probe of a parked endpoint, with two workers at one ledger', () => {
  let ledger: VirtualLedger;
  let [first, second]: TestWorker[] = [];

  beforeAll(async () => {
    ledger = await openVirtualLedger();
  });
  beforeEach(async () => {
    [first, second] = [new TestWorker(ledger), new TestWorker(ledger)];
    await first.written(first.openEndpoints.open(address, 'no answer', 5));
    await ledger.time.pass(1000);
  });
  afterEach(async () => {
    for (const worker of [first!, second!]) {
      worker.kill();
      await worker.hasKept();
    }
    vi.restoreAllMocks();
    await ledger.test.clear();
  });
  afterAll(async () => {
    vi.useRealTimers();
    await ledger.close();
  });

  const probes = async () => (await ledger.test.sql('SELECT probes FROM endpoint'))[0]!.probes;
  async function pass(seconds: number): Promise<void> {
    for (let nr = 0; nr < seconds; nr++) {
      await ledger.time.pass(1000);
      await first!.hasKept();
    }
  }

  it('is the only one for as long as its call takes, and the next follows when that has ended', async () => {
    const place = (await first!.enter()) as Place;
    expect(place.probes).toBe(address);
    for (let seconds = 0; seconds < 60; seconds++) {
      await pass(1);
      expect(await second!.enter()).toBe('endpoint-parked');
      expect(await first!.enter()).toBe('endpoint-parked');
    }
    expect(await probes()).toBe(1);
    await first!.end(place);
    await pass(1);
    expect(((await second!.enter()) as Place).probes).toBe(address);
    expect(await probes()).toBe(2);
  });

  it('is taken for lost 15 seconds after its worker was killed at the latest, however long that call might have taken', async () => {
    await first!.enter();
    await pass(60);
    first!.kill();
    await pass(9);
    expect(await second!.enter()).toBe('endpoint-parked');
    await pass(6);
    expect(((await second!.enter()) as Place).probes).toBe(address);
  });
});
