import * as z from 'zod';
import { isStorable, unstorable } from '../postgres/storable-text.js';

/** A check of a text that is stored, or compared with what is. */
export const storable = z.refine<string>(isStorable, unstorable);

/** As Postgres writes it. */
export const uuid = () => z.guid().toLowerCase();

/**
 * The years 1970 to 9999: nothing of a ledger is older, ids of notifications have no other years, and Postgres reads no
 * more digits of one.
 */
const [earliest, latest] = [0, Date.UTC(9999, 11, 31)];

/** ISO 8601 in UTC. One outside those years is the nearest inside. */
export const timeInput = () =>
  z.iso
    .datetime({ offset: true })
    .transform((value) => new Date(Math.min(Math.max(Date.parse(value), earliest), latest)).toISOString());
