import type { Room } from './room.js';

/**
 * Calls are overdue and nothing was answered for this long: the endpoint hangs, and need not be waited for until a
 * timeout.
 */
const hangingMs = 2000;

/** A URL with calls that are overdue. */
interface OverdueUrl {
  /** Under way. */
  calls: number;
  /** It has answered nothing for long itself, and not only its origin. */
  isSilent: boolean;
}

/** An origin that answers nothing, with deliveries waiting for it. */
export interface Hanging {
  origin: string;
  /** Under way, to all its URLs. */
  calls: number;
  overdue: ReadonlyMap<string, OverdueUrl>;
  /** Another of its URLs answers, as far as is known: it may be quiet. */
  answersBeside: boolean;
}

const isSilent = ({ silentSince }: { silentSince: number | undefined }, now: number): boolean =>
  silentSince !== undefined && now - silentSince >= hangingMs;

/** @param withLine the rooms with deliveries in line */
export function findHanging(withLine: Iterable<Room>, now: number): Hanging[] {
  const found = new Map<string, Hanging>();
  for (const { overdue, origin } of withLine) {
    if (overdue === 0 || found.has(origin.address) || !isSilent(origin, now)) continue;
    const urls = new Map<string, OverdueUrl>();
    for (const room of origin.rooms) {
      if (room.overdue === 0) continue;
      const other = urls.get(room.address);
      urls.set(room.address, {
        calls: room.calling + (other?.calls ?? 0),
        isSilent: isSilent(room, now) && other?.isSilent !== false,
      });
    }
    const answersBeside = [...urls.keys()].every((url) => origin.answersBeside(url));
    found.set(origin.address, { origin: origin.address, calls: origin.calling, overdue: urls, answersBeside });
  }
  return [...found.values()];
}

/**
 * The endpoints that are to be parked for that, with their calls under way. It is a URL alone where another URL of
 * its host answers, as far as is known, and each of the others that hang is known to hang alone; otherwise it is the
 * origin. Where a URL is parked already, its probe may be the only call that the origin leaves without an answer:
 * another URL counts only when it has answered nothing for as long itself.
 *
 * @param hangsAlone whether its host has answered since the URL began to fail
 */
export function endpointsThatHang(
  { origin, calls, overdue, answersBeside }: Hanging,
  isOpen: (address: string) => boolean,
  hangsAlone: (url: string) => boolean,
): [address: string, calls: number][] {
  if (isOpen(origin)) return [];
  const others = [...overdue].filter(([url]) => !isOpen(url));
  const urls = others.length < overdue.size ? others.filter(([, each]) => each.isSilent) : others;
  if (urls.length === 0) return [];
  const tellOfHost = urls.filter(([url]) => !hangsAlone(url));
  if (!answersBeside || tellOfHost.length > 1) return [[origin, calls]];
  return urls.map(([url, each]) => [url, each.calls]);
}
