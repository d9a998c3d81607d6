/** The exit statuses of the command line. Documented in docs/command-line.md; scripts depend on them. */
export const exits = {
  done: 0,
  /** Refused by the server, or something that was checked is not as it should be. */
  failed: 1,
  /** Nothing was asked of the server. */
  wrongUse: 2,
  /** Heraut cannot be reached, or cannot do it now: it may work later. */
  unreachable: 3,
  /** There is no token, or it may not do this. */
  notAllowed: 4,
  /** There is no such thing. */
  notFound: 5,
  /** As shells count a command that Ctrl-C ended. */
  interrupted: 130,
} as const;

export type Exit = (typeof exits)[keyof typeof exits];

/** Ends a command. `message` is for people, and says what to do next. */
export class CommandFailure extends Error {
  constructor(
    readonly exit: Exit,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
