import { setTimeout as pause } from 'node:timers/promises';
import { AdminRefusal, isPassing } from './admin-client.js';
import { exits } from './exits.js';
import { moment } from './layout.js';
import { printable } from './printable.js';
import { ProgressBar } from './progress-bar.js';
import type { Session } from './session.js';
import { drawReplay, type Replay } from './start-replay.js';

const lookEveryMs = 1000;
/** Longer than a pause takes; one who has pressed Ctrl-C waits no longer for a server that is frozen. */
const pauseWithinMs = 10_000;

const isOver = ({ state }: Replay): boolean => state !== 'scheduled' && state !== 'running';
const pathOf = ({ id }: { id: string }): string => `/admin/v1/replays/${id}`;

/**
 * Shows how far it is until it is over. Ctrl-C pauses it, as one who stops looking may have seen something: what it
 * would still do can be resumed.
 */
export async function followReplay(session: Session, started: Replay): Promise<void> {
  if (started.state === 'scheduled' && started.startAt !== null)
    session.note(`It starts at ${moment(started.startAt)}.`);
  if (!isOver(started)) session.note(`It is ${started.id}. Ctrl-C pauses it.`);
  const bar = await ProgressBar.start(session, started.count);
  const replay = await session.terminal
    .untilInterrupted((interrupted) => untilOver(session, started, bar, interrupted))
    .finally(() => bar.stop());
  if (!isOver(replay)) {
    const paused = await pauseReplay(session, replay);
    session.show(paused, () => drawReplay(session.terminal, paused));
    session.terminal.note(
      `It is paused. \`heraut replay resume ${replay.id}\` goes on, \`heraut replay cancel ${replay.id}\` ends it.`,
    );
    session.exit = exits.interrupted;
    return;
  }
  session.show(replay, () => drawReplay(session.terminal, replay));
  if (replay.state === 'paused') session.note(`Somebody has paused it. \`heraut replay resume ${replay.id}\` goes on.`);
  if (replay.state !== 'done') session.exit = exits.failed;
}

async function pauseReplay(session: Session, replay: Replay): Promise<Replay> {
  session.note(`Pausing it, which takes ${pauseWithinMs / 1000} seconds at most.`);
  const signal = AbortSignal.timeout(pauseWithinMs);
  try {
    // Ctrl-C once more, which `npx` passes on as well, must not end this before it is said whether the replay goes on.
    return await session.terminal.untilInterrupted(() =>
      session.client.request<Replay>('POST', `${pathOf(replay)}/pause`, { signal }),
    );
  } catch (error) {
    sayItGoesOn(session, replay, error);
    throw error;
  }
}

/** @param error why it is not looked at any more; of one that has ended, it says so itself */
function sayItGoesOn({ terminal }: Session, { id }: Replay, error: unknown): void {
  if (error instanceof AdminRefusal && (error.status === 404 || error.status === 409)) return;
  terminal.note(`It may go on. \`heraut replay show ${id}\` shows it, \`heraut replay pause ${id}\` pauses it.`);
}

/** A server that is away for a while ends nothing: the replay goes on there, or when it is back. */
async function untilOver(
  session: Session,
  started: Replay,
  bar: ProgressBar,
  interrupted: AbortSignal,
): Promise<Replay> {
  let replay = started;
  let isAway = false;
  while (!isOver(replay) && !interrupted.aborted) {
    await pause(lookEveryMs, undefined, { signal: interrupted }).catch(() => {});
    try {
      replay = await session.client.request<Replay>('GET', pathOf(replay), { signal: interrupted });
    } catch (error) {
      if (interrupted.aborted) break;
      if (!isPassing(error)) {
        sayItGoesOn(session, replay, error);
        throw error;
      }
      if (!isAway) session.note(`${printable((error as Error).message)}\nThe replay goes on by itself; this waits.`);
      isAway = true;
      continue;
    }
    isAway = false;
    bar.update(replay.found, Math.max(replay.count, replay.found));
  }
  return replay;
}
