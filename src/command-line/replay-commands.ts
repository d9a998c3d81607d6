import type { Command } from 'commander';
import { CommandFailure, exits } from './exits.js';
import { followReplay } from './follow-replay.js';
import { moment, table } from './layout.js';
import { id, positiveNumber, timeAhead, wholeNumber } from './options.js';
import { showList } from './pages.js';
import { addEverythingFor, addSelectionOptions, selectionOf, type SelectionOptions } from './selection-options.js';
import type { Session } from './session.js';
import { drawReplay, startReplay, type Replay, type Wanted } from './start-replay.js';
import type { Terminal } from './terminal.js';

const path = '/admin/v1/replays';

interface StartOptions extends SelectionOptions {
  note?: string;
  dryRun?: true;
  detach?: true;
  yes?: true;
}

interface ReplayOptions extends StartOptions {
  delivered?: true;
  rate?: number;
  startAt?: string;
  stopAt?: string;
}

const changes = {
  pause: 'Holds it where it is.',
  resume: 'Goes on where it was paused.',
  cancel: 'Ends it where it is. Deliveries that it has sent go on.',
} as const;

export function addReplayCommands(program: Command, session: Session): void {
  const replay = program
    .command('replay')
    .description('Sends deliveries of a selection again, and shows those that run.');

  const starting = addEverythingFor(addSelectionOptions(replay.command('start')))
    .description('Sends again what failed or expired: says how much that is, asks, and shows how far it is.')
    .option('--delivered', 'Also what has been delivered: needs --state delivered.')
    .option('--rate <count>', 'So many a second, over all subscriptions.', positiveNumber)
    .option('--start-at <time>', 'Not before then: 10m, 2h from now, or a time.', timeAhead)
    .option('--stop-at <time>', 'Stops then, wherever it is.', timeAhead);
  addStartOptions(starting)
    .addHelpText('after', '\nCtrl-C pauses it, and says how to go on.')
    .action((options: ReplayOptions) => {
      const { delivered = false, state = [], rate, startAt, stopAt } = options;
      // The server would add it to the usual states, and everybody got everything a second time.
      if (delivered && !state.includes('delivered'))
        throw new CommandFailure(
          exits.wrongUse,
          'Say which states are meant: --state delivered, and others if wanted.',
        );
      const body = { ratePerSecond: rate, startAt, stopAt };
      return start(session, options, { kind: 'replay', onlyMissed: !delivered, body });
    });

  replay
    .command('list')
    .description('Lists replays, cancellations and closings, the newest first.')
    .option('--kind <kind>', 'replay, cancel or close.')
    .option('--state <state>', 'scheduled, running, paused, done, cancelled or stopped.')
    .option('--limit <count>', 'At most so many.', wholeNumber(1, 10_000), 50)
    .option('--cursor <cursor>', 'Goes on where a list ended.')
    .action(({ limit, ...query }: { limit: number; kind?: string; state?: string; cursor?: string }) =>
      showList<Replay>(session, { path, key: 'replays', query, limit }, (found) => drawList(session.terminal, found)),
    );

  replay
    .command('show')
    .description('Shows how far one is; with --follow until it is over.')
    .argument('<id>', 'id of the replay', id)
    .option('--follow', 'Shows its progress. Ctrl-C pauses it.')
    .action(async (replayId: string, { follow: isFollowed = false }: { follow?: boolean }) => {
      const found = await session.client.request<Replay>('GET', `${path}/${replayId}`);
      await follow(session, found, !isFollowed);
    });

  for (const [verb, description] of Object.entries(changes)) {
    replay
      .command(verb)
      .description(description)
      .argument('<id>', 'id of the replay', id)
      .action(async (replayId: string) => {
        const changed = await session.client.request<Replay>('POST', `${path}/${replayId}/${verb}`);
        session.show(changed, () => drawReplay(session.terminal, changed));
      });
  }
}

/** Of all that is begun for a selection. */
const addStartOptions = (command: Command): Command =>
  command
    .option('--note <text>', 'Why, for those who find it later.')
    .option('--dry-run', 'Only says how much it is.')
    .option('--detach', 'Does not wait until it is done.')
    .option('--yes', 'Does not ask.');

async function start(
  session: Session,
  options: StartOptions,
  { body, ...wanted }: Pick<Wanted, 'kind' | 'onlyMissed' | 'body'>,
): Promise<void> {
  const { note, dryRun = false, detach = false, yes = false } = options;
  const selection = selectionOf(options);
  const started = await startReplay(session, {
    ...wanted,
    selection,
    body: { ...body, note },
    isDry: dryRun,
    isConfirmed: yes,
  });
  if (started) await follow(session, started, detach);
}

async function follow(session: Session, replay: Replay, isDetached: boolean): Promise<void> {
  if (!isDetached) return followReplay(session, replay);
  session.show(replay, () => drawReplay(session.terminal, replay));
  session.note(`\`heraut replay show ${replay.id} --follow\` shows how far it is.`);
}

const drawList = (terminal: Terminal, replays: readonly Replay[]): string =>
  replays.length === 0
    ? 'No replays.'
    : table(
        terminal,
        ['created', 'id', 'kind', 'state', 'done', 'of', 'by', 'note'],
        replays.map((each) => [
          moment(each.createdAt),
          each.id,
          each.kind,
          each.state,
          each.done,
          `${each.count}${each.isCountComplete ? '' : ' or more'}`,
          each.createdBy,
          each.note,
        ]),
      );

/** The same for what shall not be sent any more, among the commands for deliveries. */
export function addEndingCommands(deliveries: Command, session: Session): void {
  const ending = (kind: 'cancel' | 'close', description: string) =>
    addStartOptions(addSelectionOptions(deliveries.command(`${kind}-all`)))
      .description(description)
      .action((options: StartOptions) => {
        if (kind === 'close' && !options.dryRun && options.note === undefined)
          throw new CommandFailure(exits.wrongUse, 'Say why they are closed: --note "sent by hand".');
        return start(session, options, { kind, body: {} });
      });
  ending('cancel', 'Cancels the deliveries of a selection that have not ended. Says how many, and asks.');
  ending('close', 'Closes the dead letters of a selection: nobody has to look at them any more. Needs a --note.');
}
