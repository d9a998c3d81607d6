import { PassThrough } from 'node:stream';
import { runCommandLine } from '../../src/command-line/run.js';
import { Terminal } from '../../src/command-line/terminal.js';
import { secretWatch } from './secret-watch.js';

export interface CommandResult {
  exit: number;
  /** Standard output. */
  out: string;
  /** Standard error. */
  notes: string;
}

export interface Typed {
  /** Whether people look on; machines otherwise. */
  isTerminal?: boolean;
  /** Typed when something is asked. */
  answer?: string;
}

/** The command line in this process, with its environment. */
export class CommandLine {
  private readonly handlers = new Set<() => void>();
  /** Types a line, while a command runs. */
  type: (text: string) => void = () => {};
  /** Printed so far by the command that runs. */
  out = '';
  notes = '';

  constructor(private readonly environment: Record<string, string>) {}

  async run(words: string, { isTerminal = false, answer }: Typed = {}): Promise<CommandResult> {
    const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    [this.out, this.notes] = ['', ''];
    this.type = (text) => void stdin.write(`${text}\n`);
    stdout.on('data', (text: Buffer) => (this.out += text.toString()));
    stderr.on('data', (text: Buffer) => (this.notes += text.toString()));
    for (const stream of [stdin, stdout, stderr]) Object.assign(stream, { isTTY: isTerminal, columns: 200 });
    if (answer !== undefined) this.type(answer);
    const terminal = new Terminal({
      stdin,
      stdout,
      stderr,
      onInterrupt: (handler) => {
        this.handlers.add(handler);
        return () => this.handlers.delete(handler);
      },
    });
    const exit = await runCommandLine(words.split(' '), terminal, this.environment);
    await new Promise((resolve) => setImmediate(resolve)); // the last text written is on its way
    if (!words.startsWith('token')) secretWatch.line(`${this.out}${this.notes}`);
    return { exit, out: this.out, notes: this.notes };
  }

  /** As machines run it: the parsed output of a command that is done. */
  async json<T = Record<string, unknown>>(words: string): Promise<T> {
    const { exit, out, notes } = await this.run(`${words} --json`);
    if (exit !== 0) throw new Error(`heraut ${words} ended with ${exit}: ${notes}${out}`);
    return JSON.parse(out) as T;
  }

  /** Ctrl-C. @returns how many heed it: a program is ended where none does */
  interrupt(): number {
    for (const handler of this.handlers) handler();
    return this.handlers.size;
  }
}
