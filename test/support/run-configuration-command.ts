import { Command } from 'commander';
import { AdminClient } from '../../src/command-line/admin-client.js';
import { addConfigurationCommands } from '../../src/command-line/configuration-commands.js';
import { CommandFailure } from '../../src/command-line/exits.js';
import type { Api } from './api.js';
import { secretWatch } from './secret-watch.js';

export interface Ran {
  status: number;
  output: string;
  errors: string;
}

/** `heraut plan|apply|export`, in this process, against that server. */
export async function runConfigurationCommand(api: Api, ...words: string[]): Promise<Ran> {
  const ran: Ran = { status: 0, output: '', errors: '' };
  const program = new Command()
    .option('--json')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => (ran.output += text),
      writeErr: (text) => (ran.errors += text),
    });
  addConfigurationCommands(program, () => new AdminClient(api.origin, () => api.superuserToken));
  try {
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    ran.status = error.exit;
    ran.errors += `heraut: ${error.message}\n`;
  }
  secretWatch.line(ran.output);
  secretWatch.line(ran.errors);
  return ran;
}
