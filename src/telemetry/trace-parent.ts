const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const noTrace = '0'.repeat(32);
const noSpan = '0'.repeat(16);

/** The parts of a W3C `traceparent`. */
export interface TraceParent {
  traceId: string;
  spanId: string;
  isSampled: boolean;
}

/**
 * Reads a `traceparent` header (W3C Trace Context, level 1 and what of later versions is known). Anything else is as if
 * there were none, as the recommendation has it.
 * @returns in the form of version 00, 55 characters
 */
export function readTraceParent(header: string | string[] | undefined): string | undefined {
  if (typeof header !== 'string') return undefined; // nearly always: none. Several are none
  const match = shape.exec(header);
  if (!match) return undefined;
  const [, version, traceId, spanId, flags, rest] = match;
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (traceId === noTrace || spanId === noSpan) return undefined;
  return `00-${traceId}-${spanId}-${flags}`;
}

/** @param text as `readTraceParent` or `writeTraceParent` gave it */
export const partsOf = (text: string): TraceParent => ({
  traceId: text.slice(3, 35),
  spanId: text.slice(36, 52),
  isSampled: (Number.parseInt(text.slice(53, 55), 16) & 1) === 1,
});

export const writeTraceParent = ({ traceId, spanId, isSampled }: TraceParent): string =>
  `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;

/**
 * The id of the span of the first attempt of a delivery. It is made of the ids of both, so that an attempt that follows
 * hours later, in another process, can be linked to it.
 */
export function firstAttemptSpanId(notificationId: string, subscriptionId: string): string {
  const random = (id: string) => BigInt(`0x${id.replaceAll('-', '').slice(16)}`);
  const mixed = random(notificationId) ^ random(subscriptionId);
  return (mixed === 0n ? 1n : mixed).toString(16).padStart(16, '0');
}
