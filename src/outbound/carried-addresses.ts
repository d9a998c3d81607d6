import { isIPv6 } from 'node:net';

/**
 * The IPv4 addresses that an IPv6 address carries inside, as eight numbers of 16 bits: a translator or a tunnel on the
 * way may call those instead. Empty: it carries none.
 */
export function carriedAddresses(groups: readonly number[]): string[] {
  const at = (index: number) => groups[index] ?? 0;
  const dotted = (high: number, low: number) => [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
  const last = dotted(at(6), at(7));
  const start = startOf(groups);
  if (lastFourBytesOf.has(start)) return [last];
  // IPv4-compatible, RFC 4291 §2.5.5.1. But `::` and `::1` are addresses of IPv6 alone.
  if (start === '0:0:0:0:0:0') return at(6) === 0 ? [] : [last];
  if (at(0) === 0x2002) return [dotted(at(1), at(2))]; // 6to4, RFC 3056
  // Teredo, RFC 4380 §4: its server, and the client with every bit inverted.
  if (at(0) === 0x2001 && at(1) === 0) return [dotted(at(2), at(3)), dotted(at(6) ^ 0xffff, at(7) ^ 0xffff)];
  // NAT64 with a prefix of the network's own (RFC 8215), which is 48, 56, 64 or 96 bits long. Bits 64 to 71 are no part
  // of the address (RFC 6052 §2.2).
  if (at(0) === 0x64 && at(1) === 0xff9b && at(2) === 1) {
    const bytes = groups.flatMap((group) => [group >> 8, group & 0xff]).toSpliced(8, 1);
    return [...[6, 7, 8].map((from) => bytes.slice(from, from + 4).join('.')), last];
  }
  return [];
}

/**
 * The address that a socket calls when it is given this one: where an IPv4 address is mapped into an IPv6 address (RFC
 * 4291 §2.5.5.2), that one. Rules that name ranges of addresses have to be asked about this one.
 */
export function calledAddress(address: string): string {
  if (!isIPv6(address)) return address;
  const groups = groupsOf(withoutZone(address));
  return startOf(groups) === mapped ? (carriedAddresses(groups)[0] ?? address) : address;
}

export const withoutZone = (address: string): string => address.split('%', 1)[0] ?? '';

const mapped = '0:0:0:0:0:ffff';
/** Prefixes of an IPv4 address in the last 32 bits. */
const lastFourBytesOf: ReadonlySet<string> = new Set([
  mapped,
  '0:0:0:0:ffff:0', // IPv4-translated, RFC 2765 §2.1
  '64:ff9b:0:0:0:0', // NAT64, RFC 6052 §2.1
]);

const startOf = (groups: readonly number[]): string =>
  groups
    .slice(0, 6)
    .map((group) => group.toString(16))
    .join(':');

/** The eight numbers of an IPv6 address, which must be valid and without a zone. */
export function groupsOf(address: string): number[] {
  // As `URL` writes it: hexadecimal throughout, and at most one `::`.
  const halves = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const [start = [], end = []] = halves.map((half) =>
    half === '' ? [] : half.split(':').map((hex) => parseInt(hex, 16)),
  );
  const zeros = Array.from({ length: 8 - start.length - end.length }, () => 0);
  return [...start, ...zeros, ...end];
}
