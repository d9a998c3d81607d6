import { counted } from '../infra/counted.js';
import { AdminRefusal } from './admin-client.js';
import { askOnce } from './ask-once.js';
import { fields, moment, section, table } from './layout.js';
import { printable } from './printable.js';
import type { Session } from './session.js';
import type { Terminal } from './terminal.js';

export type ReplayKind = 'replay' | 'cancel' | 'close';

export interface Replay {
  id: string;
  kind: ReplayKind;
  state: 'scheduled' | 'running' | 'paused' | 'done' | 'cancelled' | 'stopped';
  stoppedBecause: string | null;
  ratePerSecond: number | null;
  startAt: string | null;
  stopAt: string | null;
  note: string | null;
  count: number;
  isCountComplete: boolean;
  found: number;
  done: number;
  skipped: Record<string, number>;
  searchedTo: string;
  createdAt: string;
  createdBy: string | null;
  endedAt: string | null;
}

interface DryRun {
  count: number;
  isComplete: boolean;
  searchedTo: string | null;
  notifications: number;
  bySubscription: { subscriptionId: string; subscription: string; count: number }[];
  needsConfirm: boolean;
}

export interface Wanted {
  kind: ReplayKind;
  selection: Record<string, unknown>;
  /** Of a replay only. */
  onlyMissed?: boolean;
  /** The other fields of the request. */
  body: Record<string, unknown>;
  isDry: boolean;
  isConfirmed: boolean;
}

const verbs: Record<ReplayKind, string> = { replay: 'Send again', cancel: 'Cancel', close: 'Close' };
const paths: Record<ReplayKind, string> = {
  replay: '/admin/v1/replays',
  cancel: '/admin/v1/deliveries/cancel',
  close: '/admin/v1/deliveries/close',
};

/**
 * A count that is cut short is another one each time, by how much was looked at in its time: with --yes, where nobody
 * has said yes to a number, these many are made until one is confirmed.
 */
const mostCounts = 5;

/**
 * Says what a selection means, asks, and has it done.
 * @returns the replay that was made; undefined: none was, because it was a dry run, or means nothing, or somebody said
 *   no
 */
export async function startReplay(session: Session, wanted: Wanted): Promise<Replay | undefined> {
  for (let counts = 1; ; counts += 1) {
    const meant = await dryRun(session, wanted);
    try {
      return await startMeant(session, wanted, meant);
    } catch (error) {
      if (!(error instanceof AdminRefusal) || error.code !== 'selection-not-confirmed') throw error;
      if (wanted.isConfirmed && (meant.isComplete || counts === mostCounts)) throw error;
      session.note(
        wanted.isConfirmed
          ? 'Nothing was done: the next count came to another number. They are counted anew.'
          : 'It has changed since you were asked. Nothing was done.',
      );
    }
  }
}

const dryRun = (session: Session, { kind, selection, onlyMissed }: Wanted): Promise<DryRun> =>
  session.client.request<DryRun>('POST', '/admin/v1/replays/dry-run', {
    body: { kind, selection, onlyMissed },
    isRepeatable: true,
  });

/**
 * @throws {AdminRefusal} `selection-not-confirmed`, where the selection means another number by the time that somebody
 * has said yes
 */
async function startMeant(session: Session, wanted: Wanted, meant: DryRun): Promise<Replay | undefined> {
  const { kind, selection, onlyMissed, body, isDry, isConfirmed } = wanted;
  const { count, isComplete, needsConfirm } = meant;
  if (isDry) {
    session.show(meant, () => drawDryRun(session.terminal, meant));
    return undefined;
  }
  session.note(drawDryRun(session.terminal, meant));
  // A count that was cut short may not have come to those that are meant.
  if (count === 0 && isComplete) {
    if (session.isJson) session.show(null, () => '');
    session.note('Nothing was done: there are none.');
    return undefined;
  }
  const question = `${verbs[kind]} ${deliveriesIn(meant)}?`;
  if (!(await session.confirm(question, isConfirmed))) return undefined;
  // Somebody said yes to that number. With --yes nobody did, and what is meant may go on changing.
  const confirm = needsConfirm || !isConfirmed ? { confirm: count } : {};
  const asked = { selection, onlyMissed, ...body, ...confirm };
  const onGivenUp = () => session.note('It may have begun all the same: `heraut replay list` shows it if it has.');
  return askOnce<Replay>(session.client, paths[kind], asked, onGivenUp);
}

const countOf = ({ count, isComplete }: { count: number; isComplete: boolean }): string =>
  `${count}${isComplete ? '' : ' or more'}`;

const deliveriesIn = ({ count, isComplete }: DryRun): string =>
  isComplete ? counted(count, 'delivery', 'deliveries') : `${count} or more deliveries`;

function drawDryRun(terminal: Terminal, meant: DryRun): string {
  const { bySubscription, notifications, searchedTo } = meant;
  const bounded = searchedTo === null ? '' : ` Looked only at what was accepted before ${moment(searchedTo)}.`;
  const isOne = meant.count === 1 && meant.isComplete;
  const counts = `${deliveriesIn(meant)} of ${counted(notifications, 'notification')} ${isOne ? 'is' : 'are'} meant.${bounded}`;
  if (bySubscription.length === 0) return counts;
  const rows = bySubscription.map((each) => [each.count, each.subscriptionId, each.subscription]);
  return `${counts}\n${table(terminal, ['deliveries', 'subscription', 'state'], rows)}`;
}

export function drawReplay(terminal: Terminal, replay: Replay): string {
  const { state, stoppedBecause, skipped } = replay;
  const passedOver = Object.entries(skipped).filter(([, count]) => count > 0);
  return [
    fields(terminal, {
      id: replay.id,
      kind: replay.kind,
      state: stoppedBecause === null ? state : `${state} (${stoppedBecause})`,
      done: `${replay.done} of ${countOf({ count: replay.count, isComplete: replay.isCountComplete })}`,
      pace: replay.ratePerSecond === null ? 'as fast as the ledger takes it' : `${replay.ratePerSecond} a second`,
      'starts at': moment(replay.startAt) ?? undefined,
      'stops at': moment(replay.stopAt) ?? undefined,
      'looked up to': moment(replay.searchedTo),
      created: `${moment(replay.createdAt)} by ${replay.createdBy ?? 'nobody known'}`,
      ended: moment(replay.endedAt) ?? undefined,
      note: replay.note ?? undefined,
    }),
    ...(passedOver.length === 0
      ? []
      : [section(terminal, 'Passed over', passedOver.map(([why, count]) => `${count}  ${printable(why)}`).join('\n'))]),
  ].join('\n');
}
