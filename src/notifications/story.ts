import type { KnownAttempt, KnownDelivery } from '../deliveries/delivery-reader.service.js';
import { bodyErased } from '../ledger/cancel-erased.js';
import { replacedByDuplicate } from '../ledger/replace-scheduled.js';

/*
 * The story of a notification, told from the rows there are: of it, its deliveries and attempts, the audit log, and the
 * endpoints that are open now. The ledger keeps the last of several moments of a kind, and forgets some: what it does
 * not know has no time.
 */

export const storyEvents = [
  'accepted',
  'scheduled',
  'matched',
  'unmatched',
  'queued',
  'held',
  'released',
  'sent',
  'answered',
  'unanswered',
  'waiting',
  'retried',
  'subscription-paused',
  'subscription-resumed',
  'subscription-disabled',
  'subscription-enabled',
  'subscription-deleted',
  'endpoint-opened',
  'endpoint-reset',
  'delivered',
  'failed',
  'expired',
  'cancelled',
  'unknown',
] as const;

export interface StoryEvent {
  /** Null: the ledger does not know when; it stands where it belongs among the others. */
  at: Date | null;
  event: (typeof storyEvents)[number];
  /** Null: of the notification as a whole. */
  subscriptionId: string | null;
  /** Number of the attempt that was sent, answered or not answered. */
  attempt: number | null;
  /** HTTP status of the answer. */
  status: number | null;
  /** Why. */
  reason: string | null;
  /** Client id of who asked for it. */
  by: string | null;
  /** It waits until then. */
  until: Date | null;
  /** Deliveries that it was matched to, or times that it was retried. */
  count: number | null;
}

/** From the audit log: what was done to a delivery, a subscription or an endpoint. */
export interface AuditedAction {
  at: Date;
  /** Null: Heraut itself. */
  client: string | null;
  action: string;
  subject: string;
  /** Of a delivery: its state before. */
  stateBefore: string | null;
}

/** Work on a selection of deliveries that an operator asked for. */
export interface WorkOnMany {
  id: string;
  kind: 'replay' | 'cancel' | 'close';
  note: string | null;
  /** Null: nobody that is known. */
  client: string | null;
}

export interface StoryOfDelivery {
  delivery: KnownDelivery;
  /** In their order; the latest of them, where there are many. */
  attempts: readonly KnownAttempt[];
  /** To this delivery, its subscription and its endpoints, in their order. */
  actions: readonly AuditedAction[];
  /** Of which there may be earlier ones, which were not looked at. */
  cut: { delivery: boolean; subscription: boolean };
  /** Of its endpoints, those whose circuit breaker is open now. */
  openEndpoints: readonly { address: string; openedAt: Date; reason: string; nextProbeAt: Date }[];
  /** The last that was done with it and others; null: nothing, or it is no longer known. */
  work: WorkOnMany | null;
}

export interface StoryOfNotification {
  acceptedAt: Date;
  publisher: string;
  notBefore: Date | null;
  /** Of all its deliveries, those that are not told included. */
  deliveryCount: number;
}

/** In the order of time; what has none stands after what is known to have happened before. */
export function storyOf(notification: StoryOfNotification, deliveries: readonly StoryOfDelivery[]): StoryEvent[] {
  const told = [ofNotification(notification), ...deliveries.map((delivery) => ofDelivery(delivery, notification))];
  return told
    .flatMap((events) => timed(events, notification.acceptedAt))
    .toSorted((one, other) => one.time - other.time)
    .map(({ event }) => event);
}

const event = (name: StoryEvent['event'], at: Date | null, more: Partial<StoryEvent> = {}): StoryEvent => ({
  at,
  event: name,
  subscriptionId: null,
  attempt: null,
  status: null,
  reason: null,
  by: null,
  until: null,
  count: null,
  ...more,
});

/** An event without a time of its own is placed by the one before it, and not before the notification was accepted. */
function timed(events: readonly StoryEvent[], acceptedAt: Date): { event: StoryEvent; time: number }[] {
  let time = -Infinity;
  return events.map((each) => {
    time = Math.max(time, (each.at ?? acceptedAt).getTime());
    return { event: each, time };
  });
}

function ofNotification({ acceptedAt, publisher, notBefore, deliveryCount }: StoryOfNotification): StoryEvent[] {
  return [
    event('accepted', acceptedAt, { by: publisher }),
    ...(notBefore ? [event('scheduled', acceptedAt, { by: publisher, until: notBefore })] : []),
    deliveryCount > 0
      ? event('matched', acceptedAt, { count: deliveryCount })
      : event('unmatched', acceptedAt, { reason: 'no subscription asked for it, or those that did are gone' }),
  ];
}

function ofDelivery(of: StoryOfDelivery, notification: StoryOfNotification): StoryEvent[] {
  const { subscriptionId } = of.delivery;
  const known = [
    ...fromAttempts(of),
    ...fromActions(of),
    ...fromHolding(of),
    ...fromQueue(of, notification),
    ...fromEndpoints(of),
  ];
  const inOrder = known.toSorted((one, other) => one.at!.getTime() - other.at!.getTime());
  return [...withUntimed(inOrder, of), ...ending(of)].map((each) => ({ ...each, subscriptionId }));
}

function fromAttempts({ attempts }: StoryOfDelivery): StoryEvent[] {
  return attempts.flatMap(({ number, startedAt, durationMs, status, error }) => {
    const endedAt = new Date(startedAt.getTime() + durationMs);
    const outcome = status === null ? 'unanswered' : 'answered';
    return [
      event('sent', startedAt, { attempt: number }),
      event(outcome, endedAt, { attempt: number, status, reason: error }),
    ];
  });
}

const eventOfAction: Partial<Record<string, StoryEvent['event']>> = {
  'delivery.retried': 'retried',
  'delivery.cancelled': 'cancelled',
  'subscription.paused': 'subscription-paused',
  'subscription.resumed': 'subscription-resumed',
  'subscription.disabled': 'subscription-disabled',
  'subscription.enabled': 'subscription-enabled',
  'subscription.deleted': 'subscription-deleted',
  'endpoint.reset': 'endpoint-reset',
};

/** Of all that the audit log has, what is told. */
export const toldActions = Object.keys(eventOfAction);

/** Changes of its subscription after its end are no part of its story. */
function fromActions({ delivery, actions }: StoryOfDelivery): StoryEvent[] {
  return actions.flatMap(({ at, action, client, subject }) => {
    const name = eventOfAction[action];
    const isOver = !subject.startsWith('delivery/') && delivery.endedAt !== null && at > delivery.endedAt;
    return name === undefined || isOver ? [] : [event(name, at, { by: client })];
  });
}

function fromHolding({ delivery: { state, heldSince, heldFor } }: StoryOfDelivery): StoryEvent[] {
  if (!heldSince) return [];
  return [event('held', heldSince, { reason: state === 'held' ? heldFor : null })];
}

/** The last time that it was handed to the queue; that it was released, where it had been held before. */
function fromQueue({ delivery }: StoryOfDelivery, { acceptedAt }: StoryOfNotification): StoryEvent[] {
  const { queuedAt, heldSince, state } = delivery;
  if (!queuedAt || queuedAt < acceptedAt) return [];
  const wasReleased = heldSince !== null && heldSince <= queuedAt && state !== 'held';
  return [...(wasReleased ? [event('released', queuedAt)] : []), event('queued', queuedAt)];
}

function fromEndpoints({ delivery, openEndpoints }: StoryOfDelivery): StoryEvent[] {
  if (delivery.endedAt) return [];
  return openEndpoints.map(({ address, openedAt, reason, nextProbeAt }) =>
    event('endpoint-opened', openedAt, { reason: `${address}: ${reason}`, until: nextProbeAt }),
  );
}

/** Adds the events that must have happened, and whose moments were not kept. */
function withUntimed(
  known: readonly StoryEvent[],
  { delivery, attempts, actions, cut, work }: StoryOfDelivery,
): StoryEvent[] {
  const story = [...known];
  const putBefore = (name: StoryEvent['event'], at: number) => story.splice(at, 0, event(name, null));
  const heldAt = story.findLastIndex((each) => each.event === 'held');
  if (heldAt >= 0 && delivery.state !== 'held' && !story.some((each) => each.event === 'released')) {
    const next = story.findIndex((each, at) => at > heldAt && each.event === 'sent');
    if (next >= 0) putBefore('released', next);
  }
  const firstSent = story.findIndex((each) => each.event === 'sent');
  if (firstSent >= 0 && attempts[0]?.number === 1 && !story.slice(0, firstSent).some((each) => each.event === 'queued'))
    putBefore('queued', firstSent);
  const noted = actions.filter(
    ({ action, stateBefore }) => action === 'delivery.retried' && !isUnfinished(stateBefore),
  ).length;
  if (delivery.replays > noted) {
    const isKnown = work?.kind === 'replay' && delivery.replays - noted === 1;
    const unknown = cut.delivery
      ? `after its end; by whom and when is not known: ${tooMuch}`
      : 'after its end; by whom and when is not in the audit log under this delivery: by a replay, or longer ago than it is kept';
    const [by, reason] = isKnown ? [work.client, describeWork(work)] : [null, unknown];
    story.push(event('retried', null, { count: delivery.replays - noted, by, reason }));
  }
  return story;
}

const describeWork = ({ id, kind, note }: WorkOnMany): string =>
  `${{ replay: 'by replay', cancel: 'cancelled by selection', close: 'closed by selection' }[kind]} ${id}${note === null ? '' : `: ${note}`}`;

const tooMuch = 'of its entries in the audit log only the latest were looked at';

const isUnfinished = (state: string | null): boolean => state === 'waiting' || state === 'held';

function ending({ delivery, actions, cut, work }: StoryOfDelivery): StoryEvent[] {
  const { state, endedAt, nextAttemptAt, lastError } = delivery;
  switch (state) {
    case 'waiting':
      return [event('waiting', null, { until: nextAttemptAt, reason: lastError })];
    case 'delivered':
      return [event('delivered', endedAt)];
    case 'failed':
    case 'expired':
    case 'unknown':
      return [event(state, endedAt, { reason: lastError })];
    case 'cancelled': {
      const isNoted = actions.some(
        ({ action, at }) => action === 'delivery.cancelled' && endedAt !== null && at >= endedAt,
      );
      if (isNoted) return [];
      return work && work.kind !== 'replay'
        ? [event('cancelled', work.kind === 'close' ? null : endedAt, { by: work.client, reason: describeWork(work) })]
        : [event('cancelled', endedAt, { reason: cancelledBecause(delivery, actions, cut) })];
    }
    default:
      return [];
  }
}

function cancelledBecause(
  { lastError }: KnownDelivery,
  actions: readonly AuditedAction[],
  cut: StoryOfDelivery['cut'],
): string {
  if (lastError === replacedByDuplicate || lastError === bodyErased) return lastError;
  if (actions.some(({ action }) => action === 'subscription.deleted')) return 'its subscription was deleted';
  return cut.subscription
    ? `why is not known: ${tooMuch}`
    : 'with others: what its subscription held was dropped, or deliveries were cancelled by selection';
}
