import { describe, expect, it } from 'vitest';
import type { KnownAttempt, KnownDelivery } from '../deliveries/delivery-reader.service.js';
import { bodyErased } from '../ledger/cancel-erased.js';
import { replacedByDuplicate } from '../ledger/replace-scheduled.js';
import { storyOf, type AuditedAction, type StoryOfDelivery } from './story.js';

const subscriptionId = '5c5d28f3-6d24-4fd9-b2f8-2b7e3e5f5a01';
const notificationId = '019a9f3e-8c00-7000-8000-0123456789ab';
/** So many seconds after it was accepted. */
const at = (seconds: number) => new Date(Date.UTC(2026, 10, 20, 10) + seconds * 1000);
const notification = { acceptedAt: at(0), publisher: 'cases', notBefore: null, deliveryCount: 1 };

const delivery = (parts: Partial<KnownDelivery>): KnownDelivery => ({
  notificationId,
  subscriptionId,
  channel: 'cases',
  acceptedAt: at(0),
  state: 'delivered',
  generation: 1,
  attempts: 0,
  failures: 0,
  replays: 0,
  nextAttemptAt: null,
  heldFor: null,
  heldSince: null,
  queuedAt: null,
  expiresAt: null,
  lastStatus: null,
  lastError: null,
  endedAt: null,
  replayId: null,
  ...parts,
});

const attempt = (number: number, seconds: number, status: number | null, error: string | null): KnownAttempt => ({
  number,
  generation: number,
  startedAt: at(seconds),
  durationMs: 500,
  connectMs: null,
  firstByteMs: null,
  status,
  error,
  details: null,
});

const audited = (seconds: number, action: string, parts: Partial<AuditedAction> = {}): AuditedAction => ({
  at: at(seconds),
  client: 'operator',
  action,
  subject: `${action.split('.')[0]}/${subscriptionId}`,
  stateBefore: null,
  ...parts,
});

const nothing = { delivery: false, subscription: false };

/** In brief: seconds (`?`: not known), the event, and what else it says. */
function told(of: Partial<StoryOfDelivery> & Pick<StoryOfDelivery, 'delivery'>, notificationParts = {}): string[] {
  const story = storyOf({ ...notification, ...notificationParts }, [
    { attempts: [], actions: [], cut: nothing, openEndpoints: [], work: null, ...of },
  ]);
  return story.map((event) => {
    const seconds = event.at ? (event.at.getTime() - at(0).getTime()) / 1000 : '?';
    const more = [event.attempt && `#${event.attempt}`, event.status, event.reason, event.by && `by ${event.by}`];
    return [seconds, event.event, ...more].filter((part) => part !== null).join(' ');
  });
}

describe('the story of a notification', () => {
  it('is that of a delivery that arrived at once; that it was queued is known, not when', () => {
    const attempts = [attempt(1, 1, 204, null)];
    expect(told({ delivery: delivery({ attempts: 1, endedAt: at(1.6) }), attempts })).toEqual([
      '0 accepted by cases',
      '0 matched',
      '? queued',
      '1 sent #1',
      '1.5 answered #1 204',
      '1.6 delivered',
    ]);
  });

  it('says that nobody got it', () => {
    const story = storyOf({ ...notification, deliveryCount: 0 }, []);
    expect(story.map(({ event }) => event)).toEqual(['accepted', 'unmatched']);
  });

  it('says until when it is scheduled', () => {
    const [, scheduled] = storyOf({ ...notification, notBefore: at(60) }, []);
    expect(scheduled).toMatchObject({ event: 'scheduled', at: at(0), until: at(60) });
  });

  it('says why it is held now, and which endpoint is open', () => {
    const openEndpoints = [{ address: 'https://a', openedAt: at(2), reason: 'HTTP 500', nextProbeAt: at(90) }];
    const held = delivery({ state: 'held', heldFor: 'endpoint-parked', heldSince: at(3), queuedAt: null });
    expect(told({ delivery: held, openEndpoints })).toEqual([
      '0 accepted by cases',
      '0 matched',
      '2 endpoint-opened https://a: HTTP 500',
      '3 held endpoint-parked',
    ]);
  });

  it('says who paused and resumed its subscription, and when it was released', () => {
    const actions = [
      audited(-5, 'subscription.paused'),
      audited(50, 'subscription.resumed'),
      audited(70, 'subscription.paused'),
    ];
    const attempts = [attempt(1, 52, 200, null)];
    const of = delivery({ heldSince: at(0), queuedAt: at(51), endedAt: at(53) });
    expect(told({ delivery: of, attempts, actions })).toEqual([
      '-5 subscription-paused by operator',
      '0 accepted by cases',
      '0 matched',
      '0 held',
      '50 subscription-resumed by operator',
      '51 released',
      '51 queued',
      '52 sent #1',
      '52.5 answered #1 200',
      '53 delivered',
    ]);
  });

  it('says that it was released at a time that was not kept', () => {
    const attempts = [attempt(1, 52, 200, null)];
    const story = told({ delivery: delivery({ heldSince: at(1), endedAt: at(53) }), attempts });
    expect(story.slice(2)).toEqual([
      '1 held',
      '? released',
      '? queued',
      '52 sent #1',
      '52.5 answered #1 200',
      '53 delivered',
    ]);
  });

  it('says who retried it, and what came of each attempt', () => {
    const attempts = [attempt(1, 1, 500, 'HTTP 500'), attempt(2, 30, null, 'ECONNRESET'), attempt(3, 100, 200, null)];
    const actions = [audited(99, 'delivery.retried', { stateBefore: 'failed' })];
    expect(told({ delivery: delivery({ replays: 1, endedAt: at(101) }), attempts, actions }).slice(3)).toEqual([
      '1 sent #1',
      '1.5 answered #1 500 HTTP 500',
      '30 sent #2',
      '30.5 unanswered #2 ECONNRESET',
      '99 retried by operator',
      '100 sent #3',
      '100.5 answered #3 200',
      '101 delivered',
    ]);
  });

  it('says of a retry that is not in the audit log that it does not know by whom', () => {
    const story = storyOf(notification, [
      {
        delivery: delivery({ state: 'queued', replays: 2 }),
        attempts: [],
        actions: [],
        cut: nothing,
        openEndpoints: [],
        work: null,
      },
    ]);
    expect(story.at(-1)).toMatchObject({ event: 'retried', at: null, by: null, count: 2 });
  });

  it('says of what may be in the part of the audit log that was not looked at that it is not known', () => {
    const story = (parts: Partial<KnownDelivery>, cut: Partial<typeof nothing>, actions: AuditedAction[] = []) =>
      told({ delivery: delivery({ endedAt: at(9), ...parts }), actions, cut: { ...nothing, ...cut } });
    const [retried, cancelled] = [{ state: 'delivered', replays: 1 }, { state: 'cancelled' }] as const;
    const [ofDelivery, ofSubscription] = [{ delivery: true }, { subscription: true }];
    expect(story(retried, ofDelivery)).toContainEqual(
      expect.stringMatching(/retried .* not known: .* only the latest/),
    );
    expect(story(retried, ofSubscription)).toContainEqual(expect.stringMatching(/retried .* not in the audit log/));
    expect(story(cancelled, ofSubscription)).toContainEqual(
      expect.stringMatching(/cancelled .* not known: .* only the latest/),
    );
    expect(story(cancelled, ofDelivery)).toContainEqual(expect.stringMatching(/cancelled with others/));
    const deleted = story(cancelled, ofSubscription, [audited(8, 'subscription.deleted')]);
    expect(deleted).toContain('9 cancelled its subscription was deleted');
  });

  it.each([
    ['replay', 'delivered', 1, 'retried', 'by replay r-1: bad deploy', null],
    ['cancel', 'cancelled', 0, 'cancelled', 'cancelled by selection r-1: bad deploy', at(7)],
    ['close', 'cancelled', 0, 'cancelled', 'closed by selection r-1: bad deploy', null],
  ] as const)('says of a %s of many who asked for it, and why', (kind, state, replays, name, reason, when) => {
    const work = { id: 'r-1', kind, note: 'bad deploy', client: 'operator' };
    const of = delivery({ state, replays, endedAt: at(7), replayId: 'r-1' });
    const story = storyOf(notification, [
      { delivery: of, attempts: [], actions: [], cut: nothing, openEndpoints: [], work },
    ]);
    expect(story).toContainEqual(expect.objectContaining({ event: name, by: 'operator', reason, at: when }));
  });

  it('says when it is tried again', () => {
    const waiting = delivery({ state: 'waiting', nextAttemptAt: at(25), lastError: 'HTTP 503' });
    const story = storyOf(notification, [
      {
        delivery: waiting,
        attempts: [attempt(1, 0, 503, 'HTTP 503')],
        actions: [],
        cut: nothing,
        openEndpoints: [],
        work: null,
      },
    ]);
    expect(story.at(-1)).toMatchObject({ event: 'waiting', at: null, until: at(25), reason: 'HTTP 503' });
  });

  it.each([
    [[audited(9.1, 'delivery.cancelled')], ['9.1 cancelled by operator']],
    [
      [audited(8, 'subscription.deleted')],
      ['8 subscription-deleted by operator', '9 cancelled its subscription was deleted'],
    ],
    [[], [expect.stringMatching(/^9 cancelled with others/)]],
  ])('says by whom it was cancelled, or why', (actions, end) => {
    const cancelled = delivery({ state: 'cancelled', endedAt: at(9) });
    expect(told({ delivery: cancelled, actions }).slice(2)).toEqual(end);
  });

  it.each([replacedByDuplicate, bodyErased])('says of one that was cancelled for it: %s', (reason) => {
    const cancelled = delivery({ state: 'cancelled', endedAt: at(9), lastError: reason });
    const actions = [audited(10, 'subscription.deleted')];
    expect(told({ delivery: cancelled, actions })).toContain(`9 cancelled ${reason}`);
  });

  it('tells those of several deliveries in the order of time', () => {
    const other = '6c5d28f3-6d24-4fd9-b2f8-2b7e3e5f5a02';
    const of = (parts: Partial<KnownDelivery>) => ({
      delivery: delivery(parts),
      attempts: [],
      actions: [],
      cut: nothing,
      openEndpoints: [],
      work: null,
    });
    const story = storyOf({ ...notification, deliveryCount: 2 }, [
      of({ state: 'failed', endedAt: at(9), lastError: 'HTTP 415' }),
      of({ subscriptionId: other, endedAt: at(5) }),
    ]);
    expect(story.slice(2).map(({ event, subscriptionId: id }) => [event, id])).toEqual([
      ['delivered', other],
      ['failed', subscriptionId],
    ]);
  });
});
