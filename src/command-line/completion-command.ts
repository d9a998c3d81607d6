import type { Command } from 'commander';
import type { Session } from './session.js';

/** Loaded only for its own two commands: every other one starts without it. */
export async function addCompletionCommand(
  program: Command,
  session: Session,
  words: readonly string[],
): Promise<void> {
  if (words[0] === 'completion' || words[0] === 'complete') {
    const { default: tab } = await import('@bomb.sh/tab/commander');
    tab(program, { completionCommandName: 'completion' });
    return;
  }
  program
    .command('completion')
    .description('Writes a script that completes commands and options in a shell: source <(heraut completion bash).')
    .argument('<shell>', 'bash, zsh or fish')
    .action(() => session.terminal.note('Say `heraut completion <shell>`, with nothing before `completion`.'));
}
