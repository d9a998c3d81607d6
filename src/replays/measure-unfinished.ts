import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import type { ReplayKind, openReplayStates } from './replay.js';

/** No more are looked at: an operator makes each. */
const mostUnfinished = 1000;

export interface Unfinished {
  kind: ReplayKind;
  state: (typeof openReplayStates)[number];
  replays: number;
  /** Deliveries that were sent again, cancelled or closed, and those that were passed over. */
  done: number;
  /** Of those that were counted when they were made. */
  left: number;
}

/** The index of those for which one subscription gets everything holds all that have not ended. */
export const measureItems = statement(
  'measure-unfinished-replays',
  `SELECT kind, state, count(*)::int AS replays, sum(found)::float8 AS done, sum(GREATEST(counted - found, 0))::float8 AS left
   FROM (SELECT kind, state, found, counted FROM replay WHERE ended_at IS NULL LIMIT ${mostUnfinished}) AS unfinished
   GROUP BY kind, state`,
);

export const measureUnfinished = (postgres: Postgres): Promise<Unfinished[]> => postgres.query(measureItems);
