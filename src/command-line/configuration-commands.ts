import type { Command } from 'commander';
import { readFileSync } from 'node:fs';
import type { ConfigurationText } from '../configuration-file/configuration-text.js';
import type { Plan } from '../configuration-file/planning.js';
import { AdminRefusal, type AdminClient } from './admin-client.js';
import { CommandFailure, exits } from './exits.js';
import { printable, printableLines } from './printable.js';

const path = '/admin/v1/configuration';
const defaultFile = 'heraut.yaml';

interface Options {
  file: string;
  prune?: true;
  check?: true;
}

export function addConfigurationCommands(program: Command, connect: () => AdminClient): void {
  program
    .command('plan')
    .description('Shows what applying a configuration file would change. Changes nothing.')
    .option('-f, --file <file>', 'YAML of Heraut, or of setup_configuration of Open Notificaties.', defaultFile)
    .option('--prune', 'As if what the file does not name was to be removed.')
    .option('--check', 'Ends with status 1 where something would change.')
    .action(async ({ file, prune, check }: Options) => {
      const plan = await send('plan', file, prune, connect, program);
      if (check && plan.changes.length > 0)
        throw new CommandFailure(exits.failed, `What is there is not as ${file} says.`);
    });

  program
    .command('apply')
    .description(
      'Makes what is there as a configuration file says: all of it, or nothing. A second time it changes nothing.',
    )
    .option('-f, --file <file>', 'YAML of Heraut, or of setup_configuration of Open Notificaties.', defaultFile)
    .option('--prune', 'Removes applications and subscriptions that the file does not name.')
    .action(async ({ file, prune }: Options) => {
      await send('apply', file, prune, connect, program);
    });

  program
    .command('export')
    .description('Prints what is there as a configuration file, with references in the places of secrets.')
    .action(async () => {
      const exported = await connect().request('GET', path);
      if (isJson(program)) return print(program, JSON.stringify(exported, null, 2));
      const { default: yaml } = await import('yaml');
      print(program, yaml.stringify(exported, { lineWidth: 120, aliasDuplicateObjects: false }));
    });
}

/** @throws {CommandFailure} with a line for all that is wrong with the file */
async function send(
  verb: 'plan' | 'apply',
  file: string,
  prune: boolean | undefined,
  connect: () => AdminClient,
  program: Command,
): Promise<Plan> {
  // Only here: no other command needs the form of a configuration.
  const { readConfigurationText } = await import('../configuration-file/configuration-text.js');
  const { sourcesBeside } = await import('../configuration-file/sources.js');
  const { renderPlan } = await import('../configuration-file/render-plan.js');
  const read = readConfigurationText(readText(file), file, sourcesBeside(file));
  const ask = (what: 'plan' | 'apply') =>
    connect().request('POST', `${path}/${what}`, {
      query: { prune: prune ? true : undefined },
      body: read.configuration,
    });
  if (read.problems.length > 0) {
    const more = read.configuration === undefined ? [] : await ask('plan').then(() => [], furtherLines(read));
    throw wrong(program, file, [...read.problems, ...more]);
  }
  let plan: Plan;
  try {
    plan = (await ask(verb)) as Plan;
  } catch (error) {
    throw wrong(program, file, linesOf(read)(error));
  }
  if (isJson(program)) print(program, JSON.stringify({ ...plan, notes: read.notes }, null, 2));
  else {
    for (const each of read.notes) note(program, each);
    print(program, renderPlan(plan, verb));
  }
  return plan;
}

/** What the server says is wrong, by the lines of the file. @throws what is no such answer */
const linesOf =
  ({ linesOf: lines }: ConfigurationText) =>
  (error: unknown): string[] => {
    if (!(error instanceof AdminRefusal) || error.invalidParams.length === 0) throw error;
    return lines(error.invalidParams.map((param) => ({ ...param, name: withoutWhole(param.name) })));
  };

/** Likewise; what is wrong already is told also where no server can be asked. */
const furtherLines =
  (read: ConfigurationText) =>
  (error: unknown): string[] => {
    try {
      return linesOf(read)(error);
    } catch {
      return [`There may be more: the server could not check it. ${(error as Error).message}`];
    }
  };

/** The name that an answer has for the configuration as a whole. */
const withoutWhole = (name: string): string => (name === 'nonFieldErrors' ? '' : name);

/** Says what is wrong, each in a line. @returns what the command ends with */
function wrong(program: Command, file: string, lines: readonly string[]): CommandFailure {
  for (const line of lines) note(program, line);
  const count = lines.length === 1 ? 'an error' : 'errors';
  return new CommandFailure(exits.failed, `${file} has ${count}; nothing was changed.`);
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CommandFailure(exits.wrongUse, `${file} cannot be read: ${code ?? message}.`);
  }
}

const isJson = (program: Command): boolean => program.opts<{ json?: true }>().json === true;

/** What may come from others is in it, and must not steer the terminal. */
function print(program: Command, text: string): void {
  program.configureOutput().writeOut?.(`${printableLines(text.replace(/\n$/, ''))}\n`);
}

function note(program: Command, line: string): void {
  program.configureOutput().writeErr?.(`${printable(line)}\n`);
}
