import { isIP } from 'node:net';

/**
 * The address of a caller as refusals are counted under it: of IPv6 the network, because a caller has 2⁶⁴ addresses in
 * its own.
 * @param text as the socket has it, or as a proxy writes it into `X-Forwarded-For`, some with a port
 * @returns `unknown` for what is no address, so that no caller can make up keys
 */
export function addressKey(text: string | undefined): string {
  const address = withoutPort(text ?? '').replace(/%.*$/, '');
  switch (isIP(address)) {
    case 4:
      return address;
    case 6:
      return ipv4Within(address) ?? networkOf(address);
    default:
      return 'unknown';
  }
}

/** `192.0.2.1:1234` and `[2001:db8::1]:1234`. */
function withoutPort(text: string): string {
  return /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
}

/** A socket that listens for both families shows an IPv4 caller as `::ffff:192.0.2.1`. */
const ipv4Within = (address: string): string | undefined => /^::ffff:([\d.]+)$/i.exec(address)?.[1];

/** The first four groups, written in full. */
function networkOf(address: string): string {
  const [head = '', tail] = address.toLowerCase().split('::');
  const groups = (part: string) => part.split(':').filter((group) => group !== '');
  const [before, after] = [groups(head), groups(tail ?? '')];
  // An IPv4 address at the end stands for two groups.
  const width = before.length + after.length + (address.includes('.') ? 1 : 0);
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - width }, () => '0');
  return [...before, ...zeros, ...after]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':');
}
