import { spawn } from 'node:child_process';

/**
 * A program of dist in front of the terminal, or under npm: it gets one SIGTERM for each signal that would end this
 * process, which ends after it. package.json starts such scripts with `exec`: npm passes a signal on to the shell it
 * started, and a shell in between would end without passing it on.
 * @param {string[]} words of Node
 * @param {NodeJS.ProcessEnv} [env]
 */
export function spawnInFront(words, env = process.env) {
  // In a process group of its own: a Ctrl-C comes to this process, which passes on exactly one signal.
  const program = spawn(process.execPath, words, { stdio: 'inherit', env, detached: true });
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.on(signal, () => program.kill('SIGTERM'));
  }
  program.once('exit', (status) => (process.exitCode = status ?? 1));
  return program;
}
