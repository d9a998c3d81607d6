import { BlockList, isIP, type LookupFunction } from 'node:net';
import { lookup } from 'node:dns';
import type { Settings } from '../../config/settings.js';

/**
 * Ranges that are not the public internet (IANA special-purpose registries, RFC 6890 and successors, multicast, and the
 * IPv6 ranges that carry an IPv4 address inside). A caller that could name a URL there would make this server call addresses that
 * only this server can reach.
 */
const specialRanges = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
];

export class AddressRefused extends Error {
  readonly code = 'ADDRESS_REFUSED';

  constructor(readonly address: string) {
    super(`${address} is not an address callbacks may use`);
  }
}

/**
 * Which addresses callbacks may use (settings CALLBACK_NETWORKS and CALLBACK_ALLOWED_NETWORKS). The check belongs at the
 * connect, after the name was resolved and on the very addresses that are used: a name that is checked first and
 * resolved again for the call can answer differently.
 */
export class RefusedAddresses {
  private readonly refused: BlockList;
  private readonly allowed: BlockList;

  constructor({
    CALLBACK_NETWORKS,
    CALLBACK_ALLOWED_NETWORKS,
  }: Pick<Settings, 'CALLBACK_NETWORKS' | 'CALLBACK_ALLOWED_NETWORKS'>) {
    this.refused = blockList(CALLBACK_NETWORKS === 'public' ? specialRanges : []);
    this.allowed = blockList(CALLBACK_ALLOWED_NETWORKS);
  }

  /** `address`: an IP address as a socket has it, without brackets. */
  isRefused(address: string): boolean {
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    return this.refused.check(address, family) && !this.allowed.check(address, family);
  }

  /**
   * Whether the host of a URL is itself a refused address. Node does not look up a host that is an address already, so
   * `lookup` never sees it. `host` as `URL.hostname` gives it: WHATWG parsing has turned every spelling (`0x7f.1`,
   * `2130706433`) into the usual one.
   */
  isRefusedHost(host: string): boolean {
    const address = host.replace(/^\[|\]$/g, '');
    return isIP(address) !== 0 && this.isRefused(address);
  }

  /** For the `connect` options of an undici client or a socket: resolves a name to the addresses that may be used. */
  readonly lookup: LookupFunction = (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, '');
      const usable = addresses.filter(({ address }) => !this.isRefused(address));
      const first = usable[0];
      if (!first) return callback(new AddressRefused(addresses[0]?.address ?? hostname), '');
      if (options.all) callback(null, usable);
      else callback(null, first.address, first.family);
    });
  };
}

function blockList(ranges: string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/');
    const isIpv6 = isIP(address) === 6;
    list.addSubnet(address, prefix === undefined ? (isIpv6 ? 128 : 32) : Number(prefix), isIpv6 ? 'ipv6' : 'ipv4');
  }
  return list;
}
