import type { Command } from 'commander';
import { CommandFailure, exits } from './exits.js';
import { block } from './layout.js';
import { id, wholeNumber } from './options.js';
import { noteEnd } from './pages.js';
import { printable } from './printable.js';
import { readGiven } from './read-given.js';
import type { Session } from './session.js';
import type { Terminal } from './terminal.js';

interface Explanation {
  subscriptionId: string;
  ownerClientId: string;
  callbackUrl: string;
  text: string;
  isMatched: boolean | null;
  /** Of a notification that was sent. */
  catalogue?: 'as-of-acceptance' | 'as-far-as-known';
  catalogueReason?: string;
}

interface Explanations {
  explanations: Explanation[];
  nextCursor: string | null;
}

interface Forecast extends Explanations {
  channel: string;
  matchedCount: number;
  subscribedCount: number;
}

interface ExplainOptions {
  subscription?: string;
  file?: string;
  limit: number;
  cursor?: string;
}

export function addExplainCommand(program: Command, session: Session): void {
  program
    .command('explain')
    .description(
      'Says why each subscription got a notification or did not; with --file, who would get one that was never sent.',
    )
    .argument('[notification]', 'id of the notification', id)
    .option('--subscription <id>', 'Only this subscription, whatever it is about.', id)
    .option('-f, --file <file>', 'The body of a publication, in JSON; - reads standard input. Nothing is sent.')
    .option('--limit <count>', 'At most so many subscriptions.', wholeNumber(1, 500), 50)
    .option('--cursor <cursor>', 'Goes on where a list ended.')
    .action(async (notification: string | undefined, { file, ...query }: ExplainOptions) => {
      if ((notification === undefined) === (file === undefined))
        throw new CommandFailure(
          exits.wrongUse,
          'Give the id of a notification, or a --file with one that was not sent.',
        );
      const { client } = session;
      const answer = await (file === undefined
        ? client.request<Explanations>('GET', `/admin/v1/notifications/${notification}/explanations`, {
            query: { ...query },
          })
        : client.request<Forecast>('POST', '/admin/v1/explain', {
            query: { ...query },
            body: parseJson(file, await readGiven(session, file)),
            isRepeatable: true,
          }));
      session.show(answer, () => draw(session.terminal, answer));
      noteEnd(session, answer);
    });
}

/** @throws {CommandFailure} when it is no JSON */
function parseJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CommandFailure(exits.wrongUse, `${file} is not read as JSON: ${(error as Error).message}`);
  }
}

function draw(terminal: Terminal, answer: Explanations | Forecast): string {
  const summary =
    'matchedCount' in answer
      ? [
          `${answer.matchedCount} of ${answer.subscribedCount} subscriptions to ${printable(answer.channel)} would get it.`,
          '',
        ]
      : [];
  const explained = answer.explanations.map((each) => drawOne(terminal, each));
  return [...summary, ...(explained.length === 0 ? ['No subscription is about it.'] : [explained.join('\n\n')])].join(
    '\n',
  );
}

const marks = new Map<boolean | null, [mark: string, colour: number]>([
  [true, ['yes', 32]],
  [false, ['no', 31]],
  [null, ['?', 33]],
]);

function drawOne(terminal: Terminal, explanation: Explanation): string {
  const { subscriptionId, ownerClientId, callbackUrl, text, isMatched, catalogue, catalogueReason } = explanation;
  const [mark, colour] = marks.get(isMatched)!;
  const shown = terminal.isInteractive ? `\u001b[${colour}m${mark.padEnd(3)}\u001b[39m` : mark.padEnd(3);
  const head = `${shown} ${subscriptionId}  ${printable(ownerClientId)}  ${printable(callbackUrl)}`;
  const known = catalogue === 'as-far-as-known' && catalogueReason ? [block(`(${catalogueReason})`)] : [];
  return [head, block(text), ...known].join('\n');
}
