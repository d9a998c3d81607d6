import { Injectable, Logger } from '@nestjs/common';
import { Tally } from '../activity/tally.js';
import type { Accepted } from '../ledger/acceptance.js';
import { LiveEvents } from '../live-events/live-events.service.js';
import { OperationalEvents } from '../operational-events/operational-events.service.js';
import type { Publication } from './publication.js';
import { publicationsCounted } from './publishing.counters.js';

/** As much of a publication as is told. */
type Told = Pick<Publication, 'channel' | 'publisher' | 'trace'>;

/** Tells operators of publications, as they are answered: in the log, in the counters, and in live events. */
@Injectable()
export class PublicationReporter {
  private readonly logger = new Logger('Publication');

  constructor(
    private readonly liveEvents: LiveEvents,
    private readonly events: OperationalEvents,
    private readonly tally: Tally,
  ) {}

  accepted({ channel, publisher, trace }: Told, accepted: Accepted, isTooOld: boolean): void {
    const { id: notificationId, subscriptionIds } = accepted;
    publicationsCounted.inc({ channel, result: isTooOld ? 'expired' : 'accepted' });
    this.tally.accepted(channel, publisher);
    const name = isTooOld ? 'notification.expired' : 'notification.accepted';
    const event = { event: name, notificationId, channel, publisher, deliveries: subscriptionIds.length } as const;
    const ids = trace.span?.logFields; // nearly always none
    this.logger.log(ids ? { ...event, ...ids } : event);
    if (this.liveEvents.isOn) this.liveEvents.report(event);
    if (isTooOld) this.expired(accepted);
  }

  /**
   * @param of the first one. Live events have its id, as the answer to the publisher has.
   * @param withdrawn the notification that was to be replaced; undefined: nothing is stored of this publication
   */
  duplicate({ channel, publisher, trace }: Told, of: string, withdrawn?: string): void {
    publicationsCounted.inc({ channel, result: 'duplicate' });
    this.tally.duplicate(channel, publisher);
    const event = { event: 'notification.duplicate', channel, publisher } as const;
    const notificationId = withdrawn && { notificationId: withdrawn };
    this.logger.log({ ...event, ...notificationId, duplicateOf: of, ...trace.span?.logFields });
    if (this.liveEvents.isOn) this.liveEvents.report({ ...event, notificationId: of, deliveries: 0 });
  }

  replayed({ channel, publisher, trace }: Told, notificationId: string): void {
    publicationsCounted.inc({ channel, result: 'replayed' });
    this.logger.log({
      event: 'notification.replayed',
      notificationId,
      channel,
      publisher,
      ...trace.span?.logFields,
    });
  }

  replaced({ channel, publisher, trace }: Told, notificationId: string, deliveries: number): void {
    publicationsCounted.inc({ channel, result: 'replaced' });
    this.logger.log({
      event: 'notification.replaced',
      notificationId,
      channel,
      publisher,
      deliveries,
      ...trace.span?.logFields,
    });
  }

  /** As one, however many subscriptions would have got it. */
  private expired({ id, subscriptionIds }: Accepted): void {
    const count = subscriptionIds.length;
    if (count === 0) return;
    const subscriptionId = count === 1 ? subscriptionIds[0]! : null;
    const reason = 'its notification was too old when it was accepted';
    this.events.report({ event: 'delivery.dead', notificationId: id, subscriptionId, state: 'expired', reason, count });
    if (count > 1) this.tally.gaveUpTogether(subscriptionIds);
  }
}
