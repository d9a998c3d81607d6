import { runCommandLine } from './command-line/run.js';
import { Terminal } from './command-line/terminal.js';

process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE') return; // the reader of a pipe has ended (`| head`), which the terminal hears as well
  process.stderr.write(`heraut: standard output cannot be written: ${code ?? message}\n`, () => process.exit(1));
});
// Nobody reads the notes: the command goes on all the same, as what it has begun does.
process.stderr.on('error', () => {});

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
