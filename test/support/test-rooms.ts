import type { HeldReason } from '../../src/ledger/delivery.js';
import type { CalledSubscription } from '../../src/endpoints/known-rooms.js';
import { Place } from '../../src/endpoints/room.js';
import { Rooms } from '../../src/endpoints/rooms.js';
import { well, type Verdict } from '../../src/endpoints/verdict.js';
import { settled } from './settled.js';

export const unanswered: Verdict = { kind: 'unanswered', reason: 'ECONNRESET' };
export const untrusted: Verdict = { kind: 'untrusted', reason: 'CERT_HAS_EXPIRED' };
export const troubled: Verdict = { kind: 'troubled', reason: 'HTTP 500', askedDelayMs: undefined };

/** A delivery on its way: its place, or why it is held; undefined while it waits in line. */
export interface Asked {
  url: string;
  answer: Place | HeldReason | undefined;
}

/** The rooms of a worker, with a clock and calls that a test directs. */
export function testRooms() {
  const at = { nowMs: 0, rooms: undefined as unknown as Rooms };

  /** Anew, with nothing known of any endpoint. */
  const start = (places = 512, perUrl = 128) => {
    at.nowMs = 1_000_000;
    at.rooms = new Rooms({ places, perUrl, longestWaitMs: 60_000, now: () => at.nowMs });
  };

  /** The call begins as soon as it has its place. */
  function ask(
    url: string,
    maxConcurrency: number | null = null,
    isHandedOver = false,
    credentials: CalledSubscription['credentials'] = {},
  ): Asked {
    const asked: Asked = { url, answer: undefined };
    const take = (answer: Place | HeldReason) => {
      asked.answer = answer;
      if (answer instanceof Place) at.rooms.begin(answer);
    };
    const answer = at.rooms.enter({ id: 'subscription', callbackUrl: url, maxConcurrency, credentials }, isHandedOver);
    if (answer instanceof Promise) void answer.then(take);
    else take(answer);
    return asked;
  }
  const askMany = (url: string, count: number, isHandedOver = false) =>
    Array.from({ length: count }, () => ask(url, null, isHandedOver));
  const isOpen = ({ answer }: Asked) => answer instanceof Place && answer.hasRoom;
  const openOf = (asked: Asked[]) => asked.filter(isOpen).length;
  const end = ({ answer }: Asked, verdict: Verdict = well, durationMs = 10) => {
    at.rooms.leave(answer as Place, verdict, durationMs);
    at.rooms.giveBack(answer as Place);
  };
  /** Fills the window with calls and ends them. @returns how many there were */
  function round(url: string, verdict: Verdict = well): number {
    const open: Asked[] = [];
    for (let next = ask(url); isOpen(next); next = ask(url)) open.push(next);
    at.rooms.turnAway('endpoint-busy');
    for (const each of open) end(each, verdict);
    return open.length;
  }
  /** It has answered well, and is known for it. */
  const prove = (url: string) => end(ask(url));
  /** As many origins with one call each. */
  const fill = (count: number) => {
    const urls = Array.from({ length: count }, (_, nr) => `http://filling-${nr}/`);
    for (const url of urls) prove(url);
    return urls.map((url) => ask(url));
  };
  async function pass(ms: number): Promise<void> {
    for (const until = at.nowMs + ms; at.nowMs < until;) {
      at.nowMs += 50;
      at.rooms.tick();
      await settled();
    }
  }

  return { at, start, ask, askMany, isOpen, openOf, end, round, prove, fill, pass };
}
