import type { Settings } from '../config/settings.js';
import { UrlRefused } from './refused.js';

/** Of a URL; `port` is empty where it is the usual one. */
export interface Callable {
  protocol: string;
  hostname: string;
  port: string;
}

/** The schemes and ports of URLs that may be called (settings CALLBACK_SCHEMES and CALLBACK_PORTS). */
export class UrlRules {
  private readonly protocols: ReadonlySet<string>;
  private readonly ports: Settings['CALLBACK_PORTS'];

  constructor({ CALLBACK_SCHEMES, CALLBACK_PORTS }: Pick<Settings, 'CALLBACK_SCHEMES' | 'CALLBACK_PORTS'>) {
    this.protocols = new Set(CALLBACK_SCHEMES.map((scheme) => `${scheme}:`));
    this.ports = CALLBACK_PORTS;
  }

  refusalOf({ protocol, port }: Callable): UrlRefused | undefined {
    if (!this.protocols.has(protocol)) return new UrlRefused(`the scheme ${protocol}`, 'CALLBACK_SCHEMES');
    if (!this.ports) return undefined;
    const number = Number(port || (protocol === 'https:' ? 443 : 80));
    if (this.ports.some(({ first, last }) => first <= number && number <= last)) return undefined;
    return new UrlRefused(`the port ${number}`, 'CALLBACK_PORTS');
  }
}
