import { isIP } from 'node:net';
import { loopbackRanges } from './address-guard.js';
import { Ranges } from './ranges.js';

/** Hosts that are called without the egress proxy (setting EGRESS_PROXY_EXCEPTIONS). */
export class ProxyExceptions {
  private readonly names: string[];
  private readonly addresses: Ranges;

  constructor(exceptions: readonly string[]) {
    const isName = (one: string) => isIP(one.split('/', 1)[0] ?? '') === 0;
    this.names = exceptions.filter(isName).map((name) => name.toLowerCase().replace(/^\*?\./, ''));
    // Always: seen from the proxy, it is the proxy's own loopback.
    this.addresses = new Ranges([...exceptions.filter((one) => !isName(one)), ...loopbackRanges]);
  }

  /** A name in the list stands for itself and all names below it. */
  hasName(host: string): boolean {
    const name = host.toLowerCase().replace(/\.$/, '');
    return this.names.some((one) => name === one || name.endsWith(`.${one}`));
  }

  hasAddress(address: string): boolean {
    return this.addresses.include(address);
  }
}
