import { lookup } from 'node:dns';
import type { LookupFunction, Socket } from 'node:net';
import { buildConnector } from 'undici';
import type { Settings } from '../config/settings.js';
import { AddressGuard, AddressRefused } from './address-guard.js';

/** By which this side proves itself to a receiver, and knows it; each in PEM. */
export interface TlsIdentity {
  /** With the certificates between it and its authority. */
  certificate?: string;
  /** Of `certificate`. */
  key?: string;
  /** Instead of the authorities that Node trusts. */
  authority?: string;
}

/**
 * Makes one connection and calls back when a request can be written, or with an error. What it returns is not yet that
 * connection, and is there to be destroyed. Undefined: nothing is being made, the error has been told.
 */
export type Connector = (...parameters: Parameters<buildConnector.connector>) => Socket | undefined;

/** The one way out: every connection to an address that somebody else has named is made here, under the address guard. */
export class Outbound {
  private readonly guard: AddressGuard;
  private readonly lookUp: LookupFunction;

  /** @param lookUp asks for the addresses of a name */
  constructor(settings: Settings, lookUp: LookupFunction = lookup) {
    this.guard = new AddressGuard(settings);
    this.lookUp = this.guard.guarded(lookUp);
  }

  /**
   * Connectors share nothing, TLS sessions neither: each is for the holders of one identity.
   * @param timeoutMs 0: none; the caller destroys what it was given when its time is up
   */
  connectorFor({ certificate: cert, key, authority: ca }: TlsIdentity = {}, timeoutMs = 0): Connector {
    // Its type does not say so, but it returns the socket.
    const connect = buildConnector({ timeout: timeoutMs, lookup: this.lookUp, cert, key, ca }) as Connector;
    return (options, callback) => {
      if (!this.guard.isRefusedHost(options.hostname)) return connect(options, callback);
      callback(new AddressRefused(options.hostname), null);
      return undefined;
    };
  }
}
