import { BlockList, isIPv6 } from 'node:net';

/** Addresses, by CIDR ranges or one by one. */
export class Ranges {
  // One list for each family: a range of IPv6 in it would also mean the IPv4 addresses that can be written as IPv6.
  private readonly lists = { ipv4: new BlockList(), ipv6: new BlockList() };

  constructor(ranges: readonly string[]) {
    for (const range of ranges) {
      const { address, prefix, family } = parse(range);
      this.lists[family].addSubnet(address, prefix, family);
    }
  }

  include(address: string): boolean {
    const family = familyOf(address);
    return this.lists[family].check(address, family);
  }
}

/** Whether `outer` has every address of `inner`. */
export function isWithin(inner: string, outer: string): boolean {
  const { address, prefix } = parse(inner);
  return prefix >= parse(outer).prefix && new Ranges([outer]).include(address);
}

function parse(range: string): { address: string; prefix: number; family: 'ipv4' | 'ipv6' } {
  const [address = '', prefix] = range.split('/');
  const family = familyOf(address);
  return { address, prefix: prefix === undefined ? { ipv4: 32, ipv6: 128 }[family] : Number(prefix), family };
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4');
