/**
 * A URL or an address that may not be called here, whoever asks. `message` is for strangers: it names the setting that
 * could allow it, and does not tell them where a name leads.
 */
export abstract class Refused extends Error {
  abstract readonly code: string;
  /** By which it could be allowed. */
  abstract readonly setting: 'CALLBACK_ALLOWED_NETWORKS' | 'CALLBACK_SCHEMES' | 'CALLBACK_PORTS';
}

export class AddressRefused extends Refused {
  readonly code = 'ADDRESS_REFUSED';
  readonly setting = 'CALLBACK_ALLOWED_NETWORKS';

  /** @param address for the log */
  constructor(readonly address: string) {
    super('the address is not one that callbacks may use; an operator can allow it with CALLBACK_ALLOWED_NETWORKS');
  }
}

export class UrlRefused extends Refused {
  readonly code = 'URL_REFUSED';

  constructor(
    what: string,
    readonly setting: 'CALLBACK_SCHEMES' | 'CALLBACK_PORTS',
  ) {
    super(`${what} is not one that callbacks may use; an operator can allow it with ${setting}`);
  }
}
