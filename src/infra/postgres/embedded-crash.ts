import type { PGlite } from '@electric-sql/pglite';
import { CannotConnect } from '../cannot-connect.js';

const full = 'Its disk is full: make room there, and start again.';
const other = 'Start again. If that does not help, look at the log of the system, and put a copy in its place.';

/**
 * The embedded Postgres has crashed (`PANIC`): where its log finds no room on the disk, for example. In the place of
 * its process, which it would end, it is left in the middle of what it did, and the next statement would never return.
 */
export class EmbeddedCrash extends CannotConnect {
  /** crash_shutdown: a caller may try again, and what was not answered yet may have taken place. */
  readonly code = '57P02';

  constructor(directory: string, panic: string) {
    const remedy = /no space left|quota/i.test(panic) ? full : other;
    super(`The embedded database in DATA_DIR (${directory})`, { message: `PANIC: ${panic}` }, remedy);
  }
}

/** Finds the crash of an embedded database, and lets nothing into it afterwards, whichever way it comes. */
export class CrashWatch {
  readonly crashed: Promise<EmbeddedCrash>;
  private tell!: (crash: EmbeddedCrash) => void;
  private crash: EmbeddedCrash | undefined;
  private panic = 'no reason given';

  constructor(private readonly directory: string) {
    this.crashed = new Promise((resolve) => (this.tell = resolve));
  }

  get hasCrashed(): boolean {
    return this.crash !== undefined;
  }

  /** For the lines of Postgres' own log: before it crashes it says why. */
  readonly onStderr = (line: string): boolean => {
    this.panic = /\[\d+\] PANIC: +(.*)/.exec(line)?.[1] ?? this.panic;
    return false; // it is handled as ever
  };

  guard(pglite: PGlite): void {
    // Emscripten calls it within the statement, before anything else can run.
    const module = pglite.Module as { onAbort?: () => void };
    module.onAbort = () => {
      this.crash ??= new EmbeddedCrash(this.directory, this.panic);
      this.tell(this.crash);
    };
    // The one way in: that of TypeORM's driver, of `exec` and `query`, and of messages that stand in line already.
    const run = pglite.execProtocolRawSync.bind(pglite);
    pglite.execProtocolRawSync = (message) => {
      if (this.crash) throw this.crash;
      return run(message);
    };
  }
}
