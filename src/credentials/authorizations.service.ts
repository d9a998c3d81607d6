import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '../infra/clock.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { Outbound } from '../outbound/outbound.service.js';
import type { Credentials } from './credentials.js';
import { OAuth2Tokens } from './oauth2-tokens.js';
import type { Unavailable } from './unavailable.js';
import { ZgwTokens } from './zgw-token.js';

/** The fields of a subscription with which a call proves itself to its receiver. */
export interface Authorized {
  readonly auth: string;
  readonly credentials: Credentials;
}

/** The `Authorization` header of each call. */
@Injectable()
export class Authorizations implements OnModuleDestroy {
  private readonly zgw: ZgwTokens;
  private readonly oauth2: OAuth2Tokens;

  constructor(outbound: Outbound, clock: Clock, ledgerClock: LedgerClock) {
    // Not by a clock of this machine, which may be hours off: a receiver compares the time in a token with its own.
    this.zgw = new ZgwTokens(ledgerClock);
    // While its machine is suspended, the clock of a process stands still, and the ledger's is known again only after a
    // heartbeat.
    const ledgerNow = () => ledgerClock.now();
    this.oauth2 = new OAuth2Tokens(outbound, () => clock.now(), ledgerNow, [() => Date.now()]);
  }

  onModuleDestroy(): void {
    this.oauth2.close();
  }

  /** Its value. A promise, which never rejects, only where somebody else has to be asked for it. */
  of({ auth, credentials }: Authorized): string | Unavailable | Promise<string | Unavailable> {
    switch (credentials.kind) {
      case 'verbatim':
        return auth;
      case 'zgw':
        return this.zgw.authorizationFor(credentials);
      case 'oauth2':
        return this.oauth2.authorizationFor(credentials);
    }
  }

  /**
   * A receiver answered 401 to a call with this authorization.
   * @returns whether the next call gets another one
   */
  refused({ credentials }: Authorized, authorization: string): boolean {
    return credentials.kind === 'oauth2' && this.oauth2.refused(credentials, authorization);
  }
}
