import type * as z from 'zod';
import type { CreationRequests, Exchange } from '../request-keys/creation-requests.service.js';
import { checkFits, replayToShow, type replayOutput } from './replays-io.js';
import type { Replays, Wanted } from './replays.service.js';

interface Asked {
  /** Client id of the application that asks. */
  application: string;
  operation: 'create-replay' | 'cancel-deliveries' | 'close-deliveries';
  /** All that is asked for, as it was checked. */
  input: unknown;
}

/**
 * Begins the work on a selection, or finds what the same request began before.
 * @throws {ValidationProblem}
 */
export async function createReplay(
  { replays, requests }: { replays: Replays; requests: CreationRequests },
  exchange: Exchange,
  asked: Asked,
  wanted: Wanted,
): Promise<z.output<typeof replayOutput>> {
  checkFits(wanted.kind, wanted.selection, wanted.onlyMissed);
  const done = await requests.carryOut(
    exchange,
    asked,
    (reserve) => replays.create(wanted, reserve),
    (id) => replays.get(id),
  );
  return replayToShow(done.kind === 'created' ? done.created : done.found);
}
