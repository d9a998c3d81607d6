import type { Command } from 'commander';
import { AdminClient } from './admin-client.js';
import { tokenFor, type Environment } from './credentials.js';
import { CommandFailure, exits, type Exit } from './exits.js';
import type { Terminal } from './terminal.js';

const defaultUrl = 'http://127.0.0.1:8000';

interface GlobalOptions {
  json?: true;
  url?: string;
}

/** The objects that every command works with. */
export class Session {
  /** The exit status when no command fails. */
  exit: Exit = exits.done;
  private opened: AdminClient | undefined;

  constructor(
    readonly terminal: Terminal,
    readonly environment: Environment,
    private readonly program: Command,
  ) {}

  get isJson(): boolean {
    return this.program.opts<GlobalOptions>().json === true;
  }

  get url(): string {
    return this.program.opts<GlobalOptions>().url ?? (this.environment.HERAUT_URL || defaultUrl);
  }

  /** @throws {CommandFailure} when the address is no URL */
  get client(): AdminClient {
    this.opened ??= new AdminClient(this.url, () => tokenFor(this.environment, Date.now()));
    return this.opened;
  }

  /** The answer itself for machines, and what `draw` makes of it for people. */
  show(answer: unknown, draw: () => string): void {
    this.terminal.print(this.isJson ? JSON.stringify(answer, null, 2) : draw());
  }

  /** For people only: on standard error, and not beside JSON. */
  note(text: string): void {
    if (!this.isJson) this.terminal.note(text);
  }

  /**
   * Asks before something that cannot be undone, or that loads others.
   * @returns false: it shall not be done
   * @throws {CommandFailure} when nobody is there to answer
   */
  async confirm(question: string, isConfirmed: boolean): Promise<boolean> {
    if (isConfirmed) return true;
    if (!this.terminal.canAsk || this.isJson)
      throw new CommandFailure(
        exits.wrongUse,
        `${question} Nobody is there to answer: say --yes if it shall be done. Nothing was done.`,
      );
    const isWanted = await this.terminal.ask(question);
    if (!isWanted) {
      this.terminal.note('Nothing was done.');
      this.exit = exits.failed;
    }
    return isWanted;
  }
}
