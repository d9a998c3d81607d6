import { LRUCache } from 'lru-cache';
import { isIP, isIPv6, type LookupFunction } from 'node:net';
import type { Settings } from '../config/settings.js';
import { calledAddress, carriedAddresses, groupsOf, withoutZone } from './carried-addresses.js';
import { withoutBrackets } from './host.js';
import { isWithin, Ranges } from './ranges.js';
import { AddressRefused } from './refused.js';

/**
 * The ranges that are not the public internet (IANA special-purpose registries, RFC 6890 and successors, and multicast;
 * of IPv6 all that is outside 2000::/3, where alone addresses are given out, and what is special in there). A caller
 * that could name a URL there would make this server call addresses that only this server can reach.
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
  '::/3', // unspecified, loopback, IPv4 inside, NAT64, discard-only
  '2001::/23', // Teredo, ORCHID, benchmarking
  '2001:db8::/32',
  '2002::/16', // 6to4
  '3fff::/20',
  '4000::/2',
  '8000::/1', // unique local, link-local, site-local, multicast
];

/** Of this machine. */
export const loopbackRanges = ['127.0.0.0/8', '::1'];

/**
 * Addresses that only this machine, or the cloud it runs in, answers at, and where that hands out credentials. No range
 * that contains other addresses opens them.
 */
const closedRanges = [
  '169.254.0.0/16', // link-local: metadata of nearly every cloud
  'fe80::/10', // link-local
  'fd00:ec2::/32', // AWS
  'fd20:ce::254', // Google Cloud
  'fd00:c1::a9fe:a9fe', // Oracle Cloud
  '192.0.0.192', // Oracle Cloud, formerly
  'fd00:42::42', // Scaleway
  '100.100.100.200', // Alibaba Cloud
  '168.63.129.16', // Azure; a public address that is answered inside of it
];

type NetworkSettings = Pick<Settings, 'CALLBACK_NETWORKS' | 'CALLBACK_ALLOWED_NETWORKS' | 'DATABASE_URL'>;

/**
 * Which addresses may be called. The check belongs at the connect, after the name was resolved and on the very
 * addresses that are used: a name that is checked first and resolved again for the call can answer differently.
 */
export class AddressGuard {
  /** Nobody said which networks callbacks may use, and this is the embedded default. */
  readonly isLoopbackAllowed: boolean;
  private readonly special: Ranges;
  private readonly allowed: Ranges;
  private readonly closed = new Ranges(closedRanges);
  private readonly opened: Ranges;
  /** Of addresses that were asked for: to find it out takes up to 7 µs, and each connection asks. */
  private readonly known = new LRUCache<string, boolean>({ max: 10_000 });

  constructor({ CALLBACK_NETWORKS, CALLBACK_ALLOWED_NETWORKS, DATABASE_URL }: NetworkSettings) {
    this.isLoopbackAllowed = CALLBACK_NETWORKS === undefined && DATABASE_URL === undefined;
    this.special = new Ranges(CALLBACK_NETWORKS === 'any' ? [] : specialRanges);
    this.allowed = new Ranges([...CALLBACK_ALLOWED_NETWORKS, ...(this.isLoopbackAllowed ? loopbackRanges : [])]);
    this.opened = new Ranges(
      CALLBACK_ALLOWED_NETWORKS.filter((range) => closedRanges.some((closed) => isWithin(range, closed))),
    );
  }

  /** `address`: an IP address as a socket has it, without brackets. */
  isRefused(address: string): boolean {
    const known = this.known.get(address);
    if (known !== undefined) return known;
    const addresses = addressesIn(address);
    const isRefused = addresses.length === 0 || addresses.some((each) => this.refuses(each));
    this.known.set(address, isRefused);
    return isRefused;
  }

  /** Whether anybody on the internet can call it too, so that what comes of a call is no secret. */
  isPublic(address: string): boolean {
    const addresses = addressesIn(address);
    return addresses.length > 0 && !addresses.some((each) => everySpecial.include(each) || this.closed.include(each));
  }

  /**
   * Whether the host of a URL is itself a refused address. Node does not look up a host that is an address already, so
   * `lookup` never sees it. `host` as `URL.hostname` gives it, with or without brackets: WHATWG parsing has turned
   * every spelling (`0x7f.1`, `2130706433`) into the usual one.
   */
  isRefusedHost(host: string): boolean {
    const address = withoutBrackets(host);
    return isIP(address) !== 0 && this.isRefused(address);
  }

  /** The same look-up, with only the addresses that may be used: none of the others is called. */
  guarded(lookUp: LookupFunction): LookupFunction {
    return (hostname, options, callback) => {
      lookUp(hostname, { ...options, all: true }, (error, found) => {
        if (error) return callback(error, '');
        const addresses = Array.isArray(found) ? found : [{ address: found, family: isIP(found) }];
        const usable = addresses.filter(({ address }) => !this.isRefused(address));
        const first = usable[0];
        if (!first) return callback(new AddressRefused(addresses[0]?.address ?? hostname), '');
        if (options.all) callback(null, usable);
        else callback(null, first.address, first.family);
      });
    };
  }

  private refuses(address: string): boolean {
    if (this.closed.include(address)) return !this.opened.include(address);
    return this.special.include(address) && !this.allowed.include(address);
  }
}

/** Itself, and those it carries inside: each of them may be what is called in the end. None: it is not an address. */
function addressesIn(address: string): string[] {
  const called = calledAddress(withoutZone(address));
  if (isIPv6(called)) return [called, ...carriedAddresses(groupsOf(called))];
  return isIP(called) === 0 ? [] : [called];
}

const everySpecial = new Ranges(specialRanges);
