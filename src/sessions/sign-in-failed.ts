/** Why somebody is not signed in. The page `sign-in` of the console has a text for each. */
type SignInFailure =
  /** The provider does not answer, or not as one. */
  | 'provider-unavailable'
  /** The user, or the provider, has said no. */
  | 'denied'
  /** The way to the provider began in another browser, too long ago, or was gone twice. */
  | 'begin-again'
  | 'no-role'
  | 'ticket-refused'
  | 'throttled'
  /** The ledger is out of reach. */
  | 'unavailable';

export class SignInFailed extends Error {
  /** The page that the user wanted, relative to the console; undefined: not known. */
  to: string | undefined;

  constructor(
    readonly reason: SignInFailure,
    options?: ErrorOptions,
  ) {
    super(`Not signed in: ${reason}`, options);
  }
}
