import { Command, CommanderError } from 'commander';
import { version } from '../infra/version.js';
import { AdminRefusal } from './admin-client.js';
import { addAlertCommands } from './alert-commands.js';
import { addBenchCommand } from './bench-command.js';
import { addChannelCommands } from './channel-commands.js';
import { addCompletionCommand } from './completion-command.js';
import { addConfigurationCommands } from './configuration-commands.js';
import { addConsoleCommand } from './console-command.js';
import type { Environment } from './credentials.js';
import { addDeliveryCommands } from './delivery-commands.js';
import { addDoctorCommand } from './doctor-command.js';
import { addEndpointCommands } from './endpoint-commands.js';
import { CommandFailure, exits, type Exit } from './exits.js';
import { addExplainCommand } from './explain-command.js';
import { addNotificationCommands } from './notification-commands.js';
import { addPolicyCommand } from './policy-command.js';
import { printable } from './printable.js';
import { addReplayCommands } from './replay-commands.js';
import { Session } from './session.js';
import { addSubscriptionCommands } from './subscription-commands.js';
import { addTailCommand } from './tail-command.js';
import type { Terminal } from './terminal.js';
import { addTokenCommand } from './token-command.js';

const footer = `
HERAUT_URL says where Heraut is (http://127.0.0.1:8000). A token is taken from HERAUT_TOKEN, or made with
SUPERUSER_CLIENT_ID and SUPERUSER_SECRET; on the embedded database with the secret in DATA_DIR.

Exit status: 0 done, 1 refused or not as it should be, 2 wrong use, 3 out of reach, 4 not allowed, 5 no such thing.
docs/command-line.md has examples.`;

/** Does what the words of a command line say. @returns the exit status; it does not throw */
export async function runCommandLine(
  words: readonly string[],
  terminal: Terminal,
  environment: Environment,
): Promise<Exit> {
  const program = new Command('heraut');
  const session = new Session(terminal, environment, program);
  try {
    describe(program, terminal);
    addTokenCommand(program, session);
    addConsoleCommand(program, session);
    addAlertCommands(program, session);
    addNotificationCommands(program, session);
    addDeliveryCommands(program, session);
    addExplainCommand(program, session);
    addReplayCommands(program, session);
    addSubscriptionCommands(program, session);
    addChannelCommands(program, session);
    addEndpointCommands(program, session);
    addPolicyCommand(program, session);
    addConfigurationCommands(program, session);
    addTailCommand(program, session);
    addDoctorCommand(program, session);
    addBenchCommand(program, session);
    await addCompletionCommand(program, session, words);
    await program.parseAsync(words, { from: 'user' });
    return session.exit;
  } catch (error) {
    return explain(error, session);
  }
}

function describe(program: Command, terminal: Terminal): void {
  program
    .description('Operates Heraut from a shell: what is lost, who is affected, why, and what to do.')
    .version(version, '-V, --version', 'Shows the version of this command line.')
    .helpOption('-h, --help', 'Shows this help, or that of a command.')
    .helpCommand('help [command]', 'Shows the help of a command.')
    .option('--json', 'Prints JSON, as the admin API answers it.')
    .option('--url <url>', 'Where Heraut is; HERAUT_URL otherwise.')
    .configureHelp({ showGlobalOptions: true, helpWidth: Math.min(terminal.columns, 120) })
    .configureOutput({
      writeOut: (text) => terminal.print(text.replace(/\n$/, '')),
      writeErr: (text) => terminal.note(text.replace(/\n$/, '')),
    })
    .showHelpAfterError('(--help says more.)')
    .exitOverride()
    .addHelpText('after', footer);
}

function explain(error: unknown, session: Session): Exit {
  // Commander has said what is wrong. Help that was asked for is no error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exits.done : exits.wrongUse;
  if (error instanceof AdminRefusal) {
    if (session.isJson) session.terminal.print(JSON.stringify(problemOf(error), null, 2));
    session.terminal.note(textOf(error));
    return exitOf(error);
  }
  if (error instanceof CommandFailure) {
    session.terminal.note(`heraut: ${printable(error.message)}`);
    return error.exit;
  }
  session.terminal.note(`heraut: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  return exits.failed;
}

function exitOf({ status }: AdminRefusal): Exit {
  if (status === 401 || status === 403) return exits.notAllowed;
  if (status === 404) return exits.notFound;
  if (status === 429 || status >= 500) return exits.unreachable;
  return exits.failed;
}

const problemOf = ({ status, code, title, detail, invalidParams }: AdminRefusal) => ({
  status,
  code,
  title,
  detail,
  ...(invalidParams.length > 0 ? { invalidParams } : {}),
});

function textOf({ status, code, detail, invalidParams }: AdminRefusal): string {
  const wrong = invalidParams.map(({ name, reason }) => `\n  ${printable(name || 'input')}: ${printable(reason)}`);
  return `heraut: ${printable(detail)} (${status} ${printable(code)})${wrong.join('')}${hintOf(status)}`;
}

function hintOf(status: number): string {
  if (status === 403)
    return '\nThe admin API is for superusers. Set HERAUT_TOKEN, or SUPERUSER_CLIENT_ID and SUPERUSER_SECRET as the server has them.';
  if (status >= 500) return '\n`heraut doctor`, with the settings of the server, says what is wrong with it.';
  return '';
}
