import { addressOf, originOf, type Callback } from './origin.js';
import { Origin, provenMs, Room } from './room.js';

/** Of the subscription of a delivery, what its room is found by. */
export interface CalledSubscription extends Callback {
  readonly id: string;
  readonly maxConcurrency: number | null;
}

/** More than this many are looked through for those that are no longer used. */
const fewRooms = 1000;

/** The endpoints that this worker has calls for, or had lately. */
export class KnownRooms {
  private readonly rooms = new Map<string, Room>();
  private readonly origins = new Map<string, Origin>();
  private sweptAt = 0;

  /**
   * @param perUrl calls to one callback URL, at most
   * @param perOrigin to all callback URLs of an origin together
   */
  constructor(
    private readonly perUrl: number,
    private readonly perOrigin: number,
  ) {}

  of(subscription: CalledSubscription, now: number): Room {
    const key = keyFor(subscription);
    const most = this.mostFor(subscription);
    let room = this.rooms.get(key);
    if (!room) {
      room = new Room(addressOf(subscription), this.originOf(subscription.callbackUrl), most);
      room.origin.rooms.add(room);
      this.rooms.set(key, room);
    } else if (room.window.most !== most) room.window.changeMost(most);
    room.askedAt = now;
    return room;
  }

  /** Whether a room in which something has a place is still that of the subscription, and no more have one than may. */
  isOf(room: Room, subscription: CalledSubscription): boolean {
    return this.rooms.get(keyFor(subscription)) === room && room.window.open <= this.mostFor(subscription);
  }

  /** That of an endpoint, or of its URL. */
  originAt(address: string): Origin | undefined {
    return this.origins.get(originOf(address));
  }

  /** An endpoint that is not used for so long that it has to prove itself anew is forgotten. */
  sweep(now: number): void {
    if (this.rooms.size <= fewRooms || now - this.sweptAt < provenMs) return;
    this.sweptAt = now;
    const used = new Set<Origin>();
    for (const [key, room] of this.rooms) {
      if (room.isIdle && now - room.askedAt > provenMs) {
        this.rooms.delete(key);
        room.origin.rooms.delete(room);
      } else used.add(room.origin);
    }
    for (const [address, origin] of this.origins) {
      if (!used.has(origin) && origin.window.open === 0) this.origins.delete(address);
    }
  }

  private mostFor({ maxConcurrency }: CalledSubscription): number {
    return maxConcurrency === null ? this.perUrl : Math.min(this.perUrl, maxConcurrency);
  }

  private originOf(callbackUrl: string): Origin {
    const address = originOf(callbackUrl);
    let origin = this.origins.get(address);
    if (!origin) {
      origin = new Origin(address, this.perOrigin);
      this.origins.set(address, origin);
    }
    return origin;
  }
}

function keyFor(subscription: CalledSubscription): string {
  const { id, maxConcurrency } = subscription;
  const called = addressOf(subscription);
  return maxConcurrency === null ? called : `${id} ${called}`;
}

/** Whether deliveries of the room go to that endpoint: an origin, or a callback URL. */
export const leadsTo = ({ address: own, origin }: Room, address: string): boolean =>
  own === address || origin.address === address;
