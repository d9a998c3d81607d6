import * as z from 'zod';
import { mailAddress } from '../config/setting-types.js';
import { ownUrl } from '../nrc/resource.js';
import { credentialChangesInput, maxAuthLength } from '../credentials/credentials-io.js';
import { longestCallbackUrl, longestDemandedValue, mostDemands, mostEntries } from './subscription-limits.js';
import { deliveryGuarantees } from './subscription.js';
import { atMostOnceExplained } from './subscriptions-io.js';

const filterGroup = z
  .object({
    filters: z
      .record(z.string(), z.string().min(1).max(longestDemandedValue).describe('A value, compared with its case.'))
      .meta({ maxProperties: mostDemands })
      .default({})
      .describe(
        'Characteristic → the value it must have, or `*` for any. A name that a notification does not carry does not keep it away.',
      ),
    naam: z.string().min(1).describe('The naam of an existing kanaal.'),
  })
  .meta({ id: 'FilterGroup', description: 'A kanaal of an abonnement, and what is wanted of it.' });

/**
 * A subscription as the standard writes it; the document shows it, and `readAbonnement` reads it field by field. The
 * one schema for bodies and answers does not require `auth`, though POST and PUT do (docs/decisions/0038).
 */
export const abonnementSchema = z
  .object({
    url: ownUrl,
    callbackUrl: z
      .url()
      .min(1)
      .max(longestCallbackUrl)
      .describe(
        'The webhook. It must answer 401 or 403 to a call without authorization, and 200 to 209 to one with `auth`.',
      ),
    auth: z.string().min(1).max(maxAuthLength).optional().meta({
      writeOnly: true,
      description: 'The literal value of the Authorization header to send. Required in POST and PUT; never given back.',
    }),
    kanalen: z
      .array(filterGroup)
      .max(mostEntries)
      .describe('Entries are alternatives; the same kanaal may occur several times.')
      .default([]),
    // Null is one of the values, and not only `nullable`: OpenAPI 3.0 wants both where there is an `enum`.
    deliveryGuarantee: z
      .literal([...deliveryGuarantees, null])
      .optional()
      .meta({
        type: 'string',
        nullable: true,
        description: `Beyond the standard, and only shown where it was set. ${atMostOnceExplained} null: the guarantee that the server gives the owner of the abonnement. Left out: as it was.`,
      }),
    credentials: credentialChangesInput.optional().meta({
      writeOnly: true,
      description:
        'Beyond the standard, and never given back: what shows the callback that a call is ours, beside `auth`.',
    }),
    alertEmail: mailAddress.nullable().optional().meta({
      writeOnly: true,
      description:
        'Beyond the standard, and never given back: a mail address that is told when the callback does not work or deliveries were given up. null: none. Left out: as it was.',
    }),
  })
  .meta({
    id: 'Abonnement',
    description:
      'A callback, and the notificaties it gets. CloudEvents are not supported: a `sendCloudevents` other than false, which Open Notificaties adds to the standard, is refused.',
  });

/** The body of PATCH, by its name in the document of Open Notificaties: nothing is required, or has a default. */
export const patchedAbonnementSchema = abonnementSchema
  .extend({ kanalen: abonnementSchema.shape.kanalen.unwrap() })
  .partial()
  .meta({
    id: 'PatchedAbonnement',
    description: 'Changes of an abonnement. A field left out stays as it is.',
  });
