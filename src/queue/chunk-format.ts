import { isUuid } from '../infra/uuid-text.js';
import type { HandedOut } from '../ledger/delivery.js';
import type { Chunk } from './chunk.js';

/*
 * A chunk as a message: one byte with the version of this format, four with the length of the head, the head as JSON,
 * and then the bytes to send of each notification, one behind the other. They are not in the JSON, where each quotation
 * mark would be escaped on one side and read again on the other. The head:
 *
 * [catalogueVersion, queuedAt, [[notificationId, length of its bytes or null, its traceparent if it has one]…],
 *  [[nr of the notification, subscriptionId, generation, attempts, failures, replays, expiresAt,
 *    1 if it was released, 2 if as a probe, else 0]…]]
 */
const formatVersion = 3;
const headStart = 5;

type Head = [
  catalogueVersion: number,
  queuedAt: number,
  notifications: [id: string, length: number | null, traceParent?: string][],
  deliveries: [
    nr: number,
    subscriptionId: string,
    generation: number,
    attempts: number,
    failures: number,
    replays: number,
    expiresAt: number | null,
    released: 0 | 1 | 2,
  ][],
];

export function encodeChunk({ catalogueVersion, queuedAt, deliveries }: Chunk): Buffer {
  const head: Head = [catalogueVersion, queuedAt, [], []];
  const bodies: Buffer[] = [];
  let previousId = '';
  for (const delivery of deliveries) {
    const { notificationId, subscriptionId, generation, attempts, failures, replays, expiresAt } = delivery;
    const released = delivery.isProbe ? 2 : delivery.isReleased ? 1 : 0;
    if (notificationId !== previousId) {
      previousId = notificationId;
      const { body, traceParent } = delivery;
      const length = body && body.length;
      head[2].push(traceParent === undefined ? [notificationId, length] : [notificationId, length, traceParent]);
      if (body) bodies.push(body);
    }
    const nr = head[2].length - 1;
    head[3].push([nr, subscriptionId, generation, attempts, failures, replays, expiresAt, released]);
  }
  const text = JSON.stringify(head);
  const start = Buffer.allocUnsafe(headStart + Buffer.byteLength(text));
  start.writeUInt8(formatVersion, 0);
  start.writeUInt32BE(start.length - headStart, 1);
  start.write(text, headStart);
  return Buffer.concat([start, ...bodies]);
}

/** A message that this version of Heraut did not write: of another program, or of another version. */
export class UnreadableChunk extends Error {}

/** @throws {UnreadableChunk} */
export function decodeChunk(message: Buffer): Chunk {
  if (message.length < headStart || message.readUInt8(0) !== formatVersion) {
    throw new UnreadableChunk('not a chunk of this version');
  }
  let at = headStart + message.readUInt32BE(1);
  const head = readHead(message.subarray(headStart, at));
  if (!isHead(head)) throw new UnreadableChunk('the head is not that of a chunk');
  const [catalogueVersion, queuedAt, notifications, rows] = head;
  const bodies = notifications.map(([, length]) => {
    if (length === null) return null;
    at += length;
    if (at > message.length) throw new UnreadableChunk('it ends too early');
    // A copy: a delivery that takes long would keep the whole message in memory.
    return Buffer.from(message.subarray(at - length, at));
  });
  if (at !== message.length) throw new UnreadableChunk('it is longer than its head says');
  const deliveries = rows.map((row): HandedOut => {
    const [nr, subscriptionId, generation, attempts, failures, replays, expiresAt, released] = row;
    const notification = notifications[nr];
    if (!notification) throw new UnreadableChunk(`delivery of notification number ${nr}, which is not there`);
    const [notificationId, , traceParent] = notification;
    const body = bodies[nr]!;
    const isReleased = released > 0;
    const isProbe = released === 2;
    const numbers = { generation, attempts, failures, replays, expiresAt };
    return { notificationId, subscriptionId, ...numbers, isReleased, isProbe, body, traceParent };
  });
  return { catalogueVersion, queuedAt, deliveries };
}

function readHead(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown;
  } catch (cause) {
    throw new UnreadableChunk('the head is not JSON', { cause });
  }
}

// By hand: a schema of zod costs more than all else that is done to read a chunk.
function isHead(head: unknown): head is Head {
  if (!Array.isArray(head) || head.length !== 4) return false;
  const [catalogueVersion, queuedAt, notifications, deliveries] = head as unknown[];
  return (
    isCount(catalogueVersion) &&
    isCount(queuedAt) &&
    Array.isArray(notifications) &&
    notifications.every(isNotification) &&
    Array.isArray(deliveries) &&
    deliveries.every(isDelivery)
  );
}

const isNotification = (row: unknown): boolean =>
  Array.isArray(row) &&
  (row.length === 2 || (row.length === 3 && typeof row[2] === 'string')) &&
  isUuid(row[0]) &&
  (row[1] === null || isCount(row[1]));

const isDelivery = (row: unknown): boolean =>
  Array.isArray(row) &&
  row.length === 8 &&
  isCount(row[0]) &&
  isUuid(row[1]) &&
  row.slice(2, 6).every(isInt) &&
  (row[6] === null || Number.isFinite(row[6])) &&
  (row[7] === 0 || row[7] === 1 || row[7] === 2);

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

/** A number of the ledger, where it is an int: it would refuse a larger one each time the message is taken. */
const isInt = (value: unknown): boolean => isCount(value) && (value as number) < 2 ** 31;
