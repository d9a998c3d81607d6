import { runCommandLine } from './command-line/run.js';
import { Terminal } from './command-line/terminal.js';

process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  // Where the reader of a pipe ends (`| head`), so does this.
  if (code === 'EPIPE') process.exit(0);
  process.stderr.write(`heraut: standard output cannot be written: ${code ?? message}\n`, () => process.exit(1));
});

const terminal = new Terminal({
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  onInterrupt: (handler) => {
    process.on('SIGINT', handler);
    return () => process.off('SIGINT', handler);
  },
});

// Not by `exit`: what is printed into a pipe may still be on its way.
process.exitCode = await runCommandLine(process.argv.slice(2), terminal, process.env);
