import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { Tally } from '../../src/activity/tally.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { HoldRule } from '../../src/endpoints/hold-rule.service.js';
import { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import { systemClock, type Clock } from '../../src/infra/clock.js';
import { UnavailableProblem } from '../../src/infra/http/problem.js';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import type { Statement, Values } from '../../src/infra/postgres/statement.js';
import type { HandedOut } from '../../src/ledger/delivery.js';
import { PartitionKeeper } from '../../src/ledger/partition-keeper.service.js';
import { timeOfId } from '../../src/ledger/partitions.js';
import { Heartbeat } from '../../src/liveness/heartbeat.service.js';
import { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import type { Publication, RequestedPublication, Terms } from '../../src/publishing/publication.js';
import { PublicationReporter } from '../../src/publishing/publication-reporter.service.js';
import { PublishService } from '../../src/publishing/publish.service.js';
import type { Enqueuer } from '../../src/queue/enqueuer.service.js';
import { HandOver } from '../../src/queue/hand-over.service.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { unpaced } from '../support/unpaced.js';
import { TestLedger } from '../support/ledger.js';
import { contentKey, requestKey } from '../support/once-keys.js';
import { embedded } from '../support/stacks.js';
import { plainCipher } from '../support/secrets.js';
import { noListeners } from '../support/no-listeners.js';
import { noSiblings } from '../support/no-siblings.js';
import { insertSubscription } from '../support/insert-subscription.js';

Logger.overrideLogger(false);
const dayMs = 86_400_000;

const publication = (terms: Partial<Terms> = {}, body = '{}'): Publication => ({
  channel: 'cases',
  characteristics: new Map(),
  hoofdObject: 'https://objects.example/1',
  body,
  publisher: 'tester',
  refusalNow: () => undefined,
  terms: { request: null, content: null, notBefore: null, keepsPlace: false, expiresAt: null, ...terms },
  trace: {},
});

describe('publishing', () => {
  let test: TestLedger;
  let catalogue: Catalogue;
  let openEndpoints: OpenEndpoints;
  /** Called before each statement of the accepting path. */
  let happen: (name: string) => Promise<unknown> = () => Promise.resolve();
  let publishing: PublishService;
  let publishingWith: (ledgerClock: LedgerClock, handOver?: HandOver) => PublishService;
  let newHandOver: () => HandOver;
  const mostInMemory = 2;
  const enqueued: HandedOut[] = [];
  const tally = new Tally();

  beforeAll(async () => {
    test = await TestLedger.on(embedded);
    const watched = Object.create(test.postgres, {
      query: {
        value: async (statement: Statement, values: Values) => {
          await happen(statement.name);
          return test.postgres.query(statement, values);
        },
      },
    }) as Postgres;
    const enqueuer: Pick<Enqueuer, 'accepts' | 'process' | 'enqueue'> = {
      accepts: () => true,
      process: null,
      enqueue: (_lane, deliveries) => {
        enqueued.push(...deliveries);
        return Promise.resolve(0);
      },
    };
    catalogue = new Catalogue(test.postgres);
    const partitions = new PartitionKeeper(test.postgres);
    const directory = new SubscriptionDirectory(catalogue, test.postgres, plainCipher);
    const { config } = test;
    const { events } = test;
    openEndpoints = new OpenEndpoints(test.postgres, events);
    const holdRule = new HoldRule(openEndpoints);
    newHandOver = () =>
      new HandOver(
        enqueuer as Enqueuer,
        test.heartbeat,
        test.ledgerClock,
        unpaced,
        noSiblings,
        {
          together: mostInMemory,
          inMemory: () => ({ deliveries: mostInMemory, bytes: Infinity }),
          sharedFrom: Infinity,
        },
        () => systemClock.now(),
      );
    publishingWith = (ledgerClock, handOver = newHandOver()) =>
      new PublishService(
        catalogue,
        directory,
        holdRule,
        watched,
        partitions,
        handOver,
        ledgerClock,
        new PublicationReporter(noListeners, events, tally),
        config,
      );
    publishing = publishingWith(test.ledgerClock);
    await subscribe('cases');
    await catalogue.refresh();
  });
  afterAll(() => test.close());

  afterEach(() => vi.restoreAllMocks());

  const subscribe = (channel: string, columns = {}) =>
    insertSubscription((...asked) => test.sql(...asked), {
      channels: JSON.stringify([{ channel, filters: {} }]),
      ...columns,
    });
  const idsIn = (published: { id: string }[]) => published.map(({ id }) => id);

  it('writes publications that arrive together with one statement, with or without terms, and enqueues those for now', async () => {
    const names: string[] = [];
    happen = (name) => Promise.resolve(names.push(name));
    enqueued.length = 0;
    const published = await Promise.all([
      publishing.publish(publication()),
      publishing.publish(publication({ request: requestKey() })),
      publishing.publish(publication({ content: contentKey() })),
      publishing.publish(publication({ notBefore: Date.now() + 60_000 })),
      publishing.publish(publication({ expiresAt: Date.now() - 60_000 })),
    ]);
    expect(names).toEqual(['accept-on-terms']);
    expect(published.map(({ kind }) => kind)).toEqual(Array.from(published, () => 'accepted'));
    expect(enqueued.map(({ notificationId }) => notificationId)).toEqual(idsIn(published).slice(0, 3));
    await publishing.publish(publication());
    expect(names).toEqual(['accept-on-terms', 'accept']);
  });

  describe('for a subscription that may not be sent to now', () => {
    const channel = 'held';
    const [restrained, other] = [randomUUID(), randomUUID()];
    const set = async (changes: string) => {
      await test.sql('UPDATE catalogue SET version = version + 1');
      await test.sql(
        `UPDATE subscription SET ${changes}, version = (SELECT version FROM catalogue) WHERE id = '${restrained}'`,
      );
      await catalogue.refresh();
    };

    beforeAll(async () => {
      for (const id of [restrained, other]) await subscribe(channel, { id, callback_url: `http://${id}.example/hook` });
      await catalogue.refresh();
    });
    beforeEach(() => {
      happen = () => Promise.resolve();
      enqueued.length = 0;
    });
    afterEach(async () => {
      await test.sql('DELETE FROM endpoint; DELETE FROM held_subscription');
      await openEndpoints.refresh();
      await set('paused_at = NULL, rate_per_second = NULL');
    });

    it.each([
      [
        'its endpoint is parked',
        'endpoint-parked',
        () => openEndpoints.open(`http://${restrained}.example`, 'down', 5),
      ],
      [
        'others of it are held already, and it queues up behind them',
        'endpoint-busy',
        async () => {
          await test.sql('INSERT INTO held_subscription (subscription_id, is_backlog) VALUES ($1, true)', [restrained]);
          await openEndpoints.refresh();
        },
      ],
      ['it is paused', 'paused', () => set('paused_at = now()')],
      ['it has a rate', 'rate', () => set('rate_per_second = 5')],
    ])('accepts a delivery as held where %s, and enqueues only those of others', async (_why, reason, restrain) => {
      await restrain();
      const { id } = await publishing.publish({ ...publication(), channel });
      const rows = await test.sql('SELECT subscription_id, state, held_for FROM delivery WHERE notification_id = $1', [
        id,
      ]);
      expect(rows).toHaveLength(2);
      expect(rows).toContainEqual({ subscription_id: restrained, state: 'held', held_for: reason });
      expect(rows).toContainEqual({ subscription_id: other, state: 'queued', held_for: null });
      expect(enqueued.map(({ subscriptionId }) => subscriptionId)).toEqual([other]);
    });

    it('enqueues all where nothing is held, parked, paused or paced', async () => {
      await publishing.publish({ ...publication(), channel });
      expect(new Set(enqueued.map(({ subscriptionId }) => subscriptionId))).toEqual(new Set([restrained, other]));
    });
  });

  it('reports what is too old when it is accepted as a dead letter', async () => {
    const report = vi.spyOn(test.events, 'report').mockReturnValue();
    await publishing.publish(publication());
    const { id } = await publishing.publish(publication({ expiresAt: Date.now() - 60_000 }));
    const [row] = await test.sql('SELECT subscription_id FROM delivery WHERE notification_id = $1', [id]);
    const reason = 'its notification was too old when it was accepted';
    const dead = { event: 'delivery.dead', notificationId: id, state: 'expired', reason, count: 1 };
    expect(report.mock.calls).toEqual([[{ ...dead, subscriptionId: row!.subscription_id }]]);
  });

  it('counts what is too old for each subscription that would have got it', async () => {
    for (let nr = 0; nr < 2; nr++) await subscribe('aged');
    await catalogue.refresh();
    const report = vi.spyOn(test.events, 'report').mockReturnValue();
    tally.empty();
    const aged = { ...publication({ expiresAt: Date.now() - 60_000 }), channel: 'aged' };
    const { id } = await publishing.publish(aged);
    expect(report.mock.calls).toEqual([[expect.objectContaining({ subscriptionId: null, count: 2 })]]);
    const rows = await test.sql<{ id: string }>(
      'SELECT subscription_id AS id FROM delivery WHERE notification_id = $1 ORDER BY 1',
      [id],
    );
    const each = tally.empty().filter(({ kind }) => kind === 'subscription');
    expect(each.map((tallied) => tallied.id).toSorted()).toEqual(rows.map((row) => row.id));
    expect(each.map(({ counts }) => counts.gaveUp)).toEqual([1, 1]);
  });

  it('hands over what is for now to the worker of its process, and what was not committed takes up none of its room', async () => {
    const handOver = newHandOver();
    const handedOver: string[] = [];
    let finish!: () => void;
    const worked = new Promise<void>((resolve) => (finish = resolve));
    handOver.consume(async ({ deliveries }) => {
      handedOver.push(...deliveries.map(({ notificationId }) => notificationId));
      await worked;
    });
    const publishing = publishingWith(test.ledgerClock, handOver);
    enqueued.length = 0;
    happen = (name) => (name === 'accept' ? Promise.reject(new Error('cut off')) : Promise.resolve());
    for (let nr = 0; nr <= mostInMemory; nr++) await publishing.publish(publication()).catch(() => {});
    happen = () => Promise.resolve();
    const published = [];
    for (const terms of [{ notBefore: Date.now() + 60_000 }, {}, { expiresAt: Date.now() + 60_000 }, {}])
      published.push(await publishing.publish(publication(terms)));
    finish();
    const [, first, second, third] = idsIn(published);
    expect(handedOver).toEqual([first, second]);
    expect(enqueued.map(({ notificationId }) => notificationId)).toEqual([third]);
    const rows = await test.sql(
      'SELECT notification_id, process FROM delivery WHERE queued_at IS NULL AND next_at < $1',
      [new Date(Date.now() + 30_000)],
    );
    const { processId: process } = test.heartbeat;
    expect(rows).toEqual(expect.arrayContaining([first, second].map((id) => ({ notification_id: id, process }))));
  });

  it.each([400 * dayMs, 5 * 3_600_000, -5 * 3_600_000, -400 * dayMs])(
    'gives ids of the ledger’s time where the clock of its process is off by %i ms',
    async (offMs) => {
      const clock: Clock = { now: () => Date.now() + offMs, pause: systemClock.pause };
      const ledgerClock = new LedgerClock(test.postgres, clock);
      const heartbeat = new Heartbeat(test.postgres, test.config, clock, ledgerClock);
      await heartbeat.onApplicationBootstrap();
      const before = await test.now();
      const { id } = await publishingWith(ledgerClock).publish(publication());
      await heartbeat.stop();
      expect(timeOfId(id)).toBeGreaterThanOrEqual(before - 1000);
      expect(timeOfId(id)).toBeLessThanOrEqual((await test.now()) + 1000);
      expect(await test.sql('SELECT FROM delivery WHERE notification_id = $1', [id])).toHaveLength(1);
    },
  );

  it.each([400 * dayMs, -400 * dayMs])(
    'is unavailable, and not the publisher’s fault, where an id fits no partition all the same: %i ms away',
    async (offMs) => {
      const wrong = { now: () => Date.now() + offMs } as LedgerClock;
      const refused = await publishingWith(wrong)
        .publish(publication())
        .catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(UnavailableProblem);
      expect(refused).toMatchObject({ status: 503, extra: { headers: { 'retry-after': '2' } } });
    },
  );

  it('answers what was accepted although the ledger cannot say at first why others were refused', async () => {
    const request = requestKey();
    const { id } = await publishing.publish(publication({ request }));
    let failures = 1;
    happen = (name) =>
      name === 'find-once-keys' && failures-- > 0 ? Promise.reject(new Error('canceled')) : Promise.resolve();
    const published = await Promise.all([
      publishing.publish(publication({ request })),
      publishing.publish(publication({ request: requestKey() })),
    ]);
    happen = () => Promise.resolve();
    expect(failures).toBeLessThanOrEqual(0);
    expect(published).toMatchObject([{ kind: 'replayed', id }, { kind: 'accepted' }]);
  });

  it('does not ask for ever why a publication was refused', async () => {
    const request = requestKey();
    await publishing.publish(publication({ request }));
    happen = (name) => (name === 'find-once-keys' ? Promise.reject(new Error('canceled')) : Promise.resolve());
    const refused = await publishing.publish(publication({ request })).catch((error: unknown) => error);
    happen = () => Promise.resolve();
    expect(refused).toBeInstanceOf(UnavailableProblem);
  });

  it.each<[string, string, (repeated: RequestedPublication) => Promise<unknown>]>([
    ['why it was refused', 'find-once-keys', (repeated) => publishing.publish(repeated)],
    ['whether it was', 'find-by-key', (repeated) => publishing.findRepeated(repeated, new Error('by its channel'))],
  ])('does not call a repeated publication not stored where the ledger does not say %s', async (_, asked, repeat) => {
    const request = requestKey();
    const first = publication({ request });
    await publishing.publish(first);
    const tooLong = Object.assign(new Error('canceling statement'), { code: '57014', severity: 'ERROR' });
    happen = (name) => (name === asked ? Promise.reject(tooLong) : Promise.resolve());
    const refused = await repeat({ ...first, terms: { ...first.terms, request } }).catch((error: unknown) => error);
    happen = () => Promise.resolve();
    expect(refused).toBeInstanceOf(UnavailableProblem);
    expect((refused as Error).message).toContain('may not have been stored');
  });

  it('takes up room of the worker of its process once where it is matched again', async () => {
    const handOver = newHandOver();
    const handedOver: string[] = [];
    handOver.consume(
      async ({ deliveries }) => void handedOver.push(...deliveries.map(({ notificationId }) => notificationId)),
    );
    const publishing = publishingWith(test.ledgerClock, handOver);
    const published = [];
    for (let nr = 0; nr <= mostInMemory; nr++) {
      await test.sql('UPDATE catalogue SET version = version + 1');
      published.push(await publishing.publish(publication()));
    }
    expect(handedOver).toEqual(idsIn(published));
  });

  it('matches again when the catalogue has changed', async () => {
    enqueued.length = 0;
    await test.sql('UPDATE catalogue SET version = version + 1');
    const { id } = await publishing.publish(publication());
    expect(enqueued).toMatchObject([{ notificationId: id }]);
  });

  it('matches again with what there is when the database has gone back behind what is in memory', async () => {
    enqueued.length = 0;
    await test.sql('UPDATE catalogue SET version = version + 1');
    await test.sql('UPDATE subscription SET disabled_at = now(), version = (SELECT version FROM catalogue)');
    const { id: unsent } = await publishing.publish(publication());
    // As a backup has it.
    await test.sql('UPDATE catalogue SET version = version - 1');
    await test.sql('UPDATE subscription SET disabled_at = NULL, version = 1');
    const names: string[] = [];
    happen = (name) => Promise.resolve(names.push(name));
    const { id: sent } = await publishing.publish(publication());
    happen = () => Promise.resolve();
    expect(enqueued).toMatchObject([{ notificationId: sent }]);
    expect(unsent).not.toBe(sent);
    expect(names).toEqual(['accept', 'accept']); // and asked the ledger no more often than that
  });

  it('fails only the publication that cannot be stored', async () => {
    const content = contentKey();
    const results = await Promise.allSettled([
      publishing.publish(publication({ request: requestKey(), content })),
      publishing.publish(publication({ request: requestKey() }, 'a\0b')),
      publishing.publish(publication({ content })),
      publishing.publish(publication()),
    ]);
    expect(results.map((result) => (result.status === 'fulfilled' ? result.value.kind : 'refused'))).toEqual([
      'accepted',
      'refused',
      'duplicate',
      'accepted',
    ]);
  });

  it('accepts only the publication again that was undecided because the key in its way had just expired', async () => {
    const request = requestKey();
    const former = await publishing.publish(publication({ request }));
    happen = (name) =>
      name === 'find-once-keys' ? test.sql('DELETE FROM once_key WHERE key = $1', [request.key]) : Promise.resolve();
    const published = await Promise.all([
      publishing.publish(publication({ request })),
      publishing.publish(publication()),
    ]);
    happen = () => Promise.resolve();
    expect(published.map(({ kind }) => kind)).toEqual(['accepted', 'accepted']);
    expect(published[0]!.id).not.toBe(former.id);
    const rows = await test.sql('SELECT FROM notification WHERE id = ANY ($1::uuid[])', [idsIn(published)]);
    expect(rows).toHaveLength(2);
    expect(await publishing.publish(publication({ request }))).toEqual({
      kind: 'replayed',
      id: published[0]!.id,
      isDuplicate: false,
    });
  });
});
