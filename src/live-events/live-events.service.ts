import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Postgres } from '../infra/postgres/postgres.js';
import { readChannels } from '../ledger/read-channels.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { asOne, OperationalEvents, type DeadLetter } from '../operational-events/operational-events.service.js';
import { writeEvents } from './event-table.js';
import type { LiveEvent, StreamEvent } from './live-event.js';
import { eventsDropped } from './live-events.counters.js';

/**
 * Events of one process, between two writes. More are dropped, and counted: nobody reads a thousand in a quarter of a
 * second.
 */
const mostPending = 1000;
/**
 * Dead letters that are told together, between two writes, of which the channels are looked up. More are told without.
 */
export const mostTogether = 2000;
const writeEveryMs = 250;

interface Pending {
  event: LiveEvent;
  /** Those that it tells together. */
  dead: readonly DeadLetter[];
}

/**
 * Writes down what happens in this process while anybody listens, in any process. Otherwise an event costs one look at
 * a boolean: ask `isOn` before one is made.
 */
@Injectable()
export class LiveEvents implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(LiveEvents.name);
  private pending: Pending[] = [];
  private together = 0;
  private dropped = 0;
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> | undefined;

  constructor(
    private readonly postgres: Postgres,
    private readonly heartbeat: Heartbeat,
    private readonly operationalEvents: OperationalEvents,
  ) {}

  onApplicationBootstrap(): void {
    this.operationalEvents.onReport((event, dead) => {
      if (this.isOn) this.report(event, dead);
    });
  }

  /** After the last answer, for until then something happens, and before the database is closed. */
  async onApplicationShutdown(): Promise<void> {
    await this.writing;
    clearTimeout(this.timer);
    this.timer = undefined;
    await this.write();
  }

  /** Whether anybody listens, as of this process' last heartbeat. */
  get isOn(): boolean {
    return this.heartbeat.isListenedTo;
  }

  /** @param dead those that it tells together */
  report(event: LiveEvent, dead: readonly DeadLetter[] = []): void {
    if (this.pending.length >= mostPending) {
      this.dropped += 1;
      eventsDropped.inc();
      return;
    }
    const isRoom = this.together + dead.length <= mostTogether;
    if (isRoom) this.together += dead.length;
    this.pending.push({ event, dead: isRoom ? dead : [] });
    this.writeSoon();
  }

  /**
   * One write after the other. Those of all processes take turns (event-table.ts); where that takes long, a write each
   * time would have one connection of the hot path more, until publications get none.
   */
  private writeSoon(): void {
    if (this.writing) return;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.writing = this.write().finally(() => {
        this.writing = undefined;
        if (this.pending.length > 0) this.writeSoon();
      });
    }, writeEveryMs).unref();
  }

  private async write(): Promise<void> {
    const [events, dropped] = [this.pending, this.dropped];
    if (events.length === 0) return;
    [this.pending, this.together, this.dropped] = [[], 0, 0];
    try {
      const channels = await readChannels(this.postgres, [...new Set(events.flatMap(idsWithoutChannel))]);
      const texts = events.flatMap((each) => withChannel(each, channels).map((event) => JSON.stringify(event)));
      if (dropped > 0) {
        const missed: StreamEvent = { event: 'events.missed', count: dropped, reason: 'too-fast' };
        texts.push(JSON.stringify(missed));
      }
      await writeEvents(this.postgres, texts);
    } catch (error) {
      // Nothing depends on them, and there will be the next ones.
      eventsDropped.inc(events.length);
      this.dropped += events.length + dropped;
      this.logger.warn({ event: 'live-events.not-written', count: events.length, error });
    }
  }
}

/** Of an event about notifications that does not say their channel: those who deliver do not know it. */
function idsWithoutChannel({ event, dead }: Pending): string[] {
  if (dead.length > 0) return dead.map(({ notificationId }) => notificationId);
  if ('channel' in event || !('notificationId' in event) || event.notificationId === null) return [];
  return [event.notificationId];
}

/** Of dead letters that are told together: one event for each of their channels. */
function withChannel(pending: Pending, channels: ReadonlyMap<string, string>): object[] {
  const { event, dead } = pending;
  const named = (one: LiveEvent, channel: string | undefined) => (channel === undefined ? one : { ...one, channel });
  if (dead.length > 0) {
    const byChannel = new Map<string | undefined, DeadLetter[]>();
    for (const each of dead) {
      const channel = channels.get(each.notificationId);
      const those = byChannel.get(channel);
      if (those) those.push(each);
      else byChannel.set(channel, [each]);
    }
    return [...byChannel].map(([channel, those]) => named(asOne(those), channel));
  }
  const [id] = idsWithoutChannel(pending);
  return [named(event, id === undefined ? undefined : channels.get(id))];
}
