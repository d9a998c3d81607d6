import { Logger } from '@nestjs/common';
import { beforeEach, describe, expect, it } from 'vitest';
import { newDelivery } from '../../test/support/new-delivery.js';
import { unpaced } from '../../test/support/unpaced.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import type { Statement } from '../infra/postgres/statement.js';
import type { HandedOut } from '../ledger/delivery.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { SiblingListener, Siblings } from '../supervision/siblings.js';
import type { Chunk } from './chunk.js';
import { encodeChunk } from './chunk-format.js';
import { InProcessDeliveryQueue } from './delivery-queue.in-process.js';
import { Enqueuer } from './enqueuer.service.js';
import { HandOver } from './hand-over.service.js';
import { takenFromSiblings } from './queue.counters.js';

Logger.overrideLogger(false);
const most = 10_000;
const mostBytes = 10_000_000;
const sharedFrom = 512;
const body = Buffer.from('{"kenmerken":{}}');

const deliveries = (count: number): HandedOut[] =>
  Array.from({ length: count }, (_, nr) =>
    newDelivery({
      notificationId: '019aa000-0000-7000-8000-000000000001',
      subscriptionId: `00000000-0000-4000-8000-${String(nr).padStart(12, '0')}`,
      body,
    }),
  );
const accepted = (count: number) => [
  { subscriptionIds: Array.from({ length: count }, () => 'any'), body: body.toString() },
];

const takenSoFar = async () => (await takenFromSiblings.get()).values[0]!.value;

/** Two processes of one supervisor. */
class Pair {
  now = 0;
  ledgerNow = 1000;
  /** False: answers wait for `tell`. */
  answersAtOnce = true;
  /** Deliveries in memory with each question. */
  readonly asked: number[] = [];
  private readonly listeners: SiblingListener[] = [];
  private readonly late: (() => void)[] = [];
  readonly one = new OneProcess('one', this, this.ends(0));
  readonly other = new OneProcess('other', this, this.ends(1));

  /** Of `other`. */
  capacityFor(sibling: number, count: number): number | undefined {
    return this.listeners[1]?.capacityFor(sibling, count)?.deliveries;
  }

  /** The first of the answers that wait, or all. */
  tell(count = Infinity): void {
    for (const answer of this.late.splice(0, count)) answer();
  }

  private ends(own: 0 | 1): Siblings {
    const other = 1 - own;
    return {
      announce() {},
      listen: (listener) => (this.listeners[own] = listener),
      askForCapacity: (question, count) => {
        this.asked.push(count);
        const capacity = this.listeners[other]?.capacityFor(own, count);
        this.late.push(() => this.listeners[own]?.answered(question, other, capacity));
        if (this.answersAtOnce) this.tell();
      },
      handOver: (sibling, message) => this.listeners[sibling]?.handedOver(message),
    };
  }
}

class OneProcess {
  readonly taken: Chunk[] = [];
  readonly written: string[] = [];
  readonly handOver: HandOver;
  /** False: others may take it for dead. */
  isSteady = true;
  private readonly consumption: { stop(): Promise<void> };

  constructor(
    readonly id: string,
    pair: Pair,
    readonly siblings: Siblings,
  ) {
    const isSteady = () => this.isSteady;
    const heartbeat = {
      processId: id,
      get isSteady() {
        return isSteady();
      },
    } as unknown as Heartbeat;
    const ledgerClock = { now: () => pair.ledgerNow } as LedgerClock;
    const postgres = { query: async ({ name }: Statement) => void this.written.push(name) } as unknown as Postgres;
    const enqueuer = new Enqueuer(new InProcessDeliveryQueue(id, 10), postgres, heartbeat, ledgerClock);
    const limits = { together: 2000, inMemory: () => ({ deliveries: most, bytes: mostBytes }), sharedFrom };
    this.handOver = new HandOver(enqueuer, heartbeat, ledgerClock, unpaced, siblings, limits, () => pair.now);
    // Never done with any.
    this.consumption = this.handOver.consume((chunk) => {
      this.taken.push(chunk);
      return new Promise(() => {});
    });
  }

  get inHand(): number {
    return this.taken.reduce((sum, chunk) => sum + chunk.deliveries.length, 0);
  }

  /** @returns the process whose they are in the ledger; undefined: they went by the queue */
  accept(count: number, queuedAt = 1000): string | undefined {
    const way = this.handOver.wayFor(accepted(count));
    way.go(deliveries(count), 7, queuedAt);
    return way.destination.state === 'in-hand' ? way.destination.process : undefined;
  }

  stop(): void {
    void this.consumption.stop();
  }
}

describe('what a process accepts', () => {
  let pair: Pair;
  let one: OneProcess;
  let other: OneProcess;

  beforeEach(() => {
    pair = new Pair();
    ({ one, other } = pair);
  });

  it('is handed over to its own worker, and nobody is asked, while that has little to send', () => {
    expect([one.accept(500), one.accept(11), one.accept(1)]).toEqual(['one', 'one', 'one']);
    expect(pair.asked).toEqual([]);
  });

  it('goes to a sibling that has less to send, as if that had accepted it', () => {
    one.accept(600);
    expect(one.accept(100)).toBe('other');
    expect(other.taken.map(({ catalogueVersion, queuedAt }) => [catalogueVersion, queuedAt])).toEqual([
      [7, 1000],
      [7, 1000],
    ]);
    expect(other.taken.flatMap((chunk) => chunk.deliveries)).toEqual(deliveries(100));
    expect(one.inHand).toBe(600);
    expect(pair.asked).toEqual([600]);
  });

  it('goes to both in equal parts when it comes for long', () => {
    for (let nr = 0; nr < 80; nr++) {
      one.accept(100);
      pair.now += 5;
    }
    expect(one.inHand + other.inHand).toBe(8000);
    expect(Math.abs(one.inHand - other.inHand)).toBeLessThanOrEqual(600);
  });

  it('goes there only as far as there is capacity, and the question is not repeated at once', () => {
    one.accept(600);
    expect([one.accept(200), one.accept(101), one.accept(100), one.accept(1)]).toEqual([
      'other',
      'one',
      'other',
      'one',
    ]);
    expect(pair.asked).toEqual([600]);
  });

  it('stays where the question is half a second old, however late the answer came', () => {
    pair.answersAtOnce = false;
    one.accept(600);
    expect(one.accept(1)).toBe('one');
    pair.now = 498;
    pair.tell();
    pair.now = 499;
    expect(one.accept(1)).toBe('other');
    pair.now = 500;
    expect(one.accept(1)).toBe('one');
  });

  it('causes one question at a time; one without an answer is given up after a second, and an answer that comes then is ignored', () => {
    pair.answersAtOnce = false;
    one.accept(600);
    for (pair.now = 0; pair.now < 1000; pair.now += 10) one.accept(1);
    expect(pair.asked).toEqual([600]);
    one.accept(1);
    expect(pair.asked).toHaveLength(2);
    pair.tell(1); // the answer to the first
    expect(one.accept(1)).toBe('one');
    pair.tell();
    expect(one.accept(1)).toBe('other');
  });

  it('stays where others may take the sibling for dead', () => {
    other.isSteady = false;
    one.accept(600);
    expect([one.accept(1), one.accept(1)]).toEqual(['one', 'one']);
    expect(pair.asked).toHaveLength(1);
  });

  it('gets half of the capacity that is not promised to a third one', () => {
    const third = 2;
    one.accept(1000);
    expect(pair.capacityFor(third, 1000)).toBe(500);
    expect([one.accept(251), one.accept(250)]).toEqual(['one', 'other']);
    // A later answer takes the place of the one before, and one that was not used counts for half a second.
    expect(pair.capacityFor(third, 1000)).toBe(250);
    pair.now = 500;
    expect(pair.capacityFor(3, 1250)).toBe(500);
  });

  it('stays where the sibling has as much to send', () => {
    other.accept(600);
    one.accept(600);
    expect([one.accept(1), one.accept(1)]).toEqual(['one', 'one']);
    expect(pair.asked).toHaveLength(1);
  });

  it('goes to a sibling that has capacity where the own worker has none', () => {
    one.handOver.occupy({ catalogueVersion: 1, queuedAt: 1, deliveries: deliveries(most) });
    expect([one.accept(1000), one.accept(1000)]).toEqual(['other', 'other']);
  });

  it('stays where the sibling has no capacity in bytes, whatever it has in number', () => {
    const chunk = { catalogueVersion: 1, queuedAt: 1, deliveries: [] as HandedOut[] };
    for (let bytes = 0; bytes < mostBytes; bytes += 8500)
      chunk.deliveries.push(newDelivery({ body: Buffer.alloc(8000) }));
    const freeMemory = other.handOver.occupy(chunk);
    one.accept(2000);
    one.accept(2000);
    expect(one.accept(100)).toBe('one');
    freeMemory();
    pair.now = 20;
    expect(one.accept(100)).toBe('other');
  });

  it('goes back to the ledger where the sibling has no capacity any more', async () => {
    one.accept(600);
    const way = one.handOver.wayFor(accepted(50));
    expect(way.destination).toMatchObject({ state: 'in-hand', process: 'other' });
    other.handOver.occupy({ catalogueVersion: 1, queuedAt: 1, deliveries: deliveries(most) });
    way.go(deliveries(50), 7, 1000);
    await new Promise(setImmediate);
    expect([other.inHand, other.written]).toEqual([0, ['put-back']]);
  });

  it('goes back to the ledger where it comes late: little is left of its lease', async () => {
    one.accept(600);
    pair.ledgerNow = 6001;
    expect(one.accept(50, 1000)).toBe('other');
    await new Promise(setImmediate);
    expect([other.inHand, other.written]).toEqual([0, ['put-back']]);
    expect(one.accept(50, 1001)).toBe('other');
    expect([other.inHand, other.written]).toEqual([50, ['put-back']]);
  });

  it('goes back to the ledger where the worker of the sibling has stopped meanwhile', async () => {
    one.accept(600);
    const way = one.handOver.wayFor(accepted(50));
    expect(way.destination).toMatchObject({ state: 'in-hand', process: 'other' });
    other.stop();
    const taken = await takenSoFar();
    way.go(deliveries(50), 7, 1000);
    await new Promise(setImmediate);
    expect(other.written).toEqual(['put-back']);
    expect(await takenSoFar()).toBe(taken);
  });

  it('is left to its lease where the sibling cannot read it', () => {
    expect(() => other.siblings.handOver(0, Buffer.from('of another version'))).not.toThrow();
    expect([one.inHand, one.written]).toEqual([0, []]);
    other.siblings.handOver(0, encodeChunk({ catalogueVersion: 1, queuedAt: 1000, deliveries: deliveries(1) }));
    expect(one.inHand).toBe(1);
  });
});
