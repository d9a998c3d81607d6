import * as z from 'zod';
import { storable } from '../infra/http/input-parts.js';
import { nextCursor, pageQuery } from '../infra/http/page-query.js';
import { isUuid } from '../infra/uuid-text.js';
import { timeOfId } from '../ledger/partitions.js';
import { erasureStates, type Erasure } from './erasure.js';

export const newErasureInput = z
  .strictObject({
    notification: z.uuid().toLowerCase().optional().describe('Id of the one notification.'),
    mainObject: z
      .string()
      .min(1)
      .check(storable)
      .optional()
      .describe('`hoofdObject` of the notifications, exactly as they have it, however long.'),
  })
  .refine(({ notification, mainObject }) => (notification === undefined) !== (mainObject === undefined), {
    error: 'Either notification or mainObject.',
  })
  .meta({ id: 'NewErasure' });

export const confirmationInput = z
  .strictObject({ confirm: z.int().min(0).describe('`found` of the erasure.') })
  .meta({ id: 'ErasureConfirmation' });

const time = () => z.iso.datetime().nullable();

export const erasureOutput = z
  .strictObject({
    id: z.uuid(),
    notification: z.uuid().nullable(),
    mainObjectHash: z
      .string()
      .nullable()
      .describe('SHA-256 of the main object, in hex. The main object itself is forgotten when the erasure has ended.'),
    state: z
      .enum(erasureStates)
      .describe(
        '`counting`; `counted`: waits for its confirmation, for a day from then on; `erasing`; `ending`: what workers had in their memory is seen off; `done`: nothing of it is sent any more, and nothing of it is in the ledger; `abandoned`: nobody confirmed it within that day, and nothing was erased.',
      ),
    requestedAt: z.iso.datetime(),
    confirmedAt: time(),
    doneAt: time(),
    searchedTo: time().describe('While it is counting or erasing: how far the search has come, by time of acceptance.'),
    found: z.int().describe('Notifications whose body is to be erased.'),
    erased: z.int().describe('Notifications whose body is erased.'),
    cancelled: z.int().describe('Deliveries that were not finished, and are not sent any more.'),
    unsettled: z.int().describe('Of them and of those that ended just before, how many a worker may still have.'),
  })
  .meta({ id: 'Erasure' });

export const erasurePageOutput = z
  .strictObject({
    erasures: z.array(erasureOutput),
    nextCursor,
  })
  .meta({ id: 'ErasurePage' });

export const erasuresQuery = z.strictObject(pageQuery('erasures', (text) => (isUuid(text) ? text : undefined)));

export const erasureToShow = (erasure: Erasure): z.output<typeof erasureOutput> => {
  const { state, reached } = erasure;
  const searched = timeOfId(reached);
  const isSearching = (state === 'counting' || state === 'erasing') && searched > 0;
  return {
    id: erasure.id,
    notification: erasure.notificationId,
    mainObjectHash: erasure.mainObjectHash,
    state,
    requestedAt: erasure.requestedAt.toISOString(),
    confirmedAt: erasure.confirmedAt?.toISOString() ?? null,
    doneAt: erasure.doneAt?.toISOString() ?? null,
    searchedTo: isSearching ? new Date(searched).toISOString() : null,
    found: erasure.found,
    erased: erasure.erased,
    cancelled: erasure.cancelled,
    unsettled: erasure.unsettled,
  };
};
