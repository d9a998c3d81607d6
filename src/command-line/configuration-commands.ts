import type { Command } from 'commander';
import type { ConfigurationText, Remark } from '../configuration-file/configuration-text.js';
import type { Plan } from '../configuration-file/planning.js';
import { AdminRefusal } from './admin-client.js';
import { CommandFailure, exits } from './exits.js';
import { printable, printableLines } from './printable.js';
import { readGiven } from './read-given.js';
import type { Session } from './session.js';

const path = '/admin/v1/configuration';
const defaultFile = 'heraut.yaml';
const fileIs = 'YAML of Heraut, or of setup_configuration of Open Notificaties; - reads standard input.';

interface Options {
  file: string;
  prune?: true;
  check?: true;
  yes?: true;
}

interface Wanted {
  verb: 'plan' | 'apply';
  file: string;
  isPruning: boolean;
  /** Whether what is pruned is not asked about. */
  isConfirmed?: boolean;
}

export function addConfigurationCommands(program: Command, session: Session): void {
  program
    .command('plan')
    .description('Shows what applying a configuration file would change. Changes nothing.')
    .option('-f, --file <file>', fileIs, defaultFile)
    .option('--prune', 'As if what the file does not name was to be removed.')
    .option('--check', 'Ends with status 1 where something would change.')
    .action(async ({ file, prune, check }: Options) => {
      const plan = await run(session, { verb: 'plan', file, isPruning: prune === true });
      if (check && plan.changes.length > 0)
        throw new CommandFailure(exits.failed, `The installation is not as ${file} says.`);
    });

  program
    .command('apply')
    .description(
      'Makes what is there as a configuration file says: all of it, or nothing. A second time it changes nothing.',
    )
    .option('-f, --file <file>', fileIs, defaultFile)
    .option('--prune', 'Removes applications and subscriptions that the file does not name: says which, and asks.')
    .option('--yes', 'Does not ask.')
    .action(async ({ file, prune, yes }: Options) => {
      await run(session, { verb: 'apply', file, isPruning: prune === true, isConfirmed: yes === true });
    });

  program
    .command('export')
    .description('Prints what is there as a configuration file, with references in the places of secrets.')
    .action(async () => {
      const exported = await session.client.request<{ subscriptions: object[] }>('GET', path);
      const { commentOnLeftOut, sayLeftOut } = await import('../configuration-file/left-out.js');
      const { toYaml } = await import('../configuration-file/yaml-text.js');
      const text = session.isJson ? JSON.stringify(exported, null, 2) : commentOnLeftOut(exported) + toYaml(exported);
      print(session, text);
      const leftOut = sayLeftOut(exported);
      if (leftOut !== undefined) throw new CommandFailure(exits.failed, leftOut);
    });
}

/** @throws {CommandFailure} with a line for all that is wrong with the file */
async function run(session: Session, { verb, file, isPruning, isConfirmed = false }: Wanted): Promise<Plan> {
  // Only here: no other command needs the form of a configuration.
  const { asLine, readConfigurationText } = await import('../configuration-file/configuration-text.js');
  const { sourcesBeside } = await import('../configuration-file/sources.js');
  const { renderPlan } = await import('../configuration-file/render-plan.js');
  const read = readConfigurationText(await readGiven(session, file), sourcesBeside(file));
  const line = asLine(file);
  const ask = async (what: 'plan' | 'apply', confirm?: number): Promise<Plan> => {
    const query = { prune: isPruning ? true : undefined, confirm };
    return await session.client.request<Plan>('POST', `${path}/${what}`, {
      query,
      body: read.configuration,
      isRepeatable: what === 'plan',
    });
  };
  if (read.problems.length > 0) {
    const more = read.configuration === undefined ? [] : await ask('plan').then(() => [], furtherLines(read, line));
    throw wrong(session, file, [...read.problems.map(line), ...more]);
  }
  const asked = (what: 'plan' | 'apply', confirm?: number) =>
    ask(what, confirm).catch((error: unknown) => {
      throw wrong(session, file, linesOf(read, line)(error));
    });
  const tellNotes = () => read.notes.forEach((each) => note(session, line(each)));
  let confirm: number | undefined;
  if (verb === 'apply' && isPruning) {
    const planned = await asked('plan');
    confirm = removalsOf(planned);
    if (confirm > 0) {
      // Before the question: they may be what decides the answer.
      if (!session.isJson) tellNotes();
      session.note(printableLines(renderPlan(planned, 'plan').trimEnd()));
      if (!(await session.confirm(`Apply it, and remove ${confirm} that ${file} does not name?`, isConfirmed)))
        return planned;
    }
  }
  const plan = await asked(verb, confirm);
  if (session.isJson) print(session, JSON.stringify({ ...plan, notes: read.notes.map(line) }, null, 2));
  else {
    if (!confirm) tellNotes();
    print(session, renderPlan(plan, verb));
  }
  return plan;
}

const removalsOf = ({ changes }: Plan): number => changes.filter(({ action }) => action === 'remove').length;

type AsLine = (remark: Remark) => string;

/** The server's remarks, by the lines of the file. @throws an error that is no such answer */
const linesOf =
  ({ remarksOn }: ConfigurationText, line: AsLine) =>
  (error: unknown): string[] => {
    if (!(error instanceof AdminRefusal) || error.invalidParams.length === 0) throw error;
    return remarksOn(error.invalidParams.map((param) => ({ ...param, name: withoutWhole(param.name) }))).map(line);
  };

/** Likewise; what is wrong already is told also where no server can be asked. */
const furtherLines =
  (read: ConfigurationText, line: AsLine) =>
  (error: unknown): string[] => {
    try {
      return linesOf(read, line)(error);
    } catch {
      return [`There may be more: the server could not check it. ${(error as Error).message}`];
    }
  };

/** The name that an answer has for the configuration as a whole. */
const withoutWhole = (name: string): string => (name === 'nonFieldErrors' ? '' : name);

/** Prints the problems, each in a line. @returns the error to end with */
function wrong(session: Session, file: string, lines: readonly string[]): CommandFailure {
  for (const line of lines) note(session, line);
  const count = lines.length === 1 ? 'an error' : 'errors';
  return new CommandFailure(exits.failed, `${file} has ${count}; nothing was changed.`);
}

/** It has text in it that may come from others, and must not steer the terminal. */
const print = (session: Session, text: string): void => session.terminal.print(printableLines(text.replace(/\n$/, '')));

const note = (session: Session, line: string): void => session.terminal.note(printable(line));
