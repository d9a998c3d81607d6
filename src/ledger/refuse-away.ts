import { UnavailableProblem } from '../infra/http/problem.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { isAnyAway } from './days.js';
import { dayOfId } from './partitions.js';

/** How long nobody knows: a backup may keep a day half dropped for hours. */
const awaySeconds = 60;

/** For the descriptions of operations. */
export const whileAway = { 503: '`day-away`: its day is being dropped, or put back. Nothing was done.' };

/**
 * Of a notification whose day is away: whether it, or a delivery of it, is there cannot be seen, and what is retried
 * would be sent when the day is back, if it comes back.
 * @throws {UnavailableProblem}
 */
export async function refuseAway(postgres: Pick<Postgres, 'queryAside'>, notificationId: string): Promise<void> {
  const day = dayOfId(notificationId);
  if (!(await isAnyAway({ query: (...asked) => postgres.queryAside(...asked) }, day, day))) return;
  const detail = 'The day of this notification is being dropped, or put back. Nothing was done.';
  throw new UnavailableProblem(detail, awaySeconds, undefined, 'day-away');
}
