import * as z from 'zod';
import { userAsCaller } from '../audit/author.js';
import type { Settings } from '../config/settings.js';
import { mailAddress } from '../config/setting-types.js';
import { storable } from '../infra/http/input-parts.js';
import { namePageOutput, namePageQuery } from '../infra/http/name-page.js';
import type { InvalidParam } from '../infra/http/problem.js';
import type { ShownApplication } from './applications.service.js';
import { allScopes } from './scopes.js';

const text = () => z.string().trim().min(1).max(255).check(storable);

const fields = {
  label: text().describe('For people.'),
  scopes: z
    .array(z.enum(allScopes))
    .transform((scopes) => [...new Set(scopes)])
    .describe('Its permissions.'),
  isSuperuser: z.boolean().describe('Passes every scope check and may use the admin API.'),
  alertEmail: mailAddress
    .nullable()
    .describe(
      'Where its owner is told of trouble with its subscriptions (see `/admin/v1/alert-rules`), unless a subscription has an address of its own. null: nowhere.',
    ),
  secret: z
    .string()
    .min(1)
    .max(255)
    .check(storable)
    .describe('HS256 key of its tokens; at least `SECRET_MIN_BYTES` bytes.'),
};

/** Why the secret is too short; undefined: it is not. */
export const refusalOfSecret = (
  secret: string,
  { SECRET_MIN_BYTES: least }: Settings,
): Omit<InvalidParam, 'name'> | undefined =>
  Buffer.byteLength(secret) >= least
    ? undefined
    : { code: 'min_length', reason: `Must have at least ${least} bytes (setting SECRET_MIN_BYTES).` };

/** Why no new application may have this client id; undefined: one may. */
export const refusalOfClientId = (clientId: string): Omit<InvalidParam, 'name'> | undefined =>
  clientId.startsWith(userAsCaller(''))
    ? { code: 'invalid', reason: `Must not begin with \`${userAsCaller('')}\`: users of the console are called so.` }
    : undefined;

export const newApplicationInput = z
  .strictObject({
    clientId: text().describe('The `client_id` of its tokens; cannot be changed, nor begin with `user:`.'),
    label: fields.label,
    scopes: fields.scopes.prefault([]),
    isSuperuser: fields.isSuperuser.default(false),
    alertEmail: fields.alertEmail.default(null),
    secret: fields.secret
      .optional()
      .describe(
        'An existing secret, to carry credentials over, of at least `SECRET_MIN_BYTES` bytes. Left out: one is made.',
      ),
  })
  .meta({ id: 'NewApplication' });

export const applicationChangesInput = z.strictObject(fields).partial().meta({ id: 'ApplicationChanges' });

export const applicationOutput = z
  .strictObject({
    id: z.uuid(),
    clientId: z.string(),
    label: z.string(),
    scopes: z.array(z.enum(allScopes)),
    isSuperuser: z.boolean(),
    alertEmail: z.string().nullable(),
    createdAt: z.iso.datetime(),
    secretSetAt: z.iso.datetime().describe('When its secret was made or last changed.'),
  })
  .meta({ id: 'Application' });

export const applicationListQuery = namePageQuery('applications', 'id, client id or label');

export const applicationListOutput = z
  .strictObject({ applications: z.array(applicationOutput), ...namePageOutput })
  .meta({ id: 'ApplicationList' });

export const applicationWithSecretOutput = z
  .strictObject({
    ...applicationOutput.shape,
    secret: z.string().describe('Shown this once.'),
  })
  .meta({ id: 'ApplicationWithSecret' });

export const createdApplicationOutput = z
  .strictObject({
    ...applicationOutput.shape,
    secret: z
      .string()
      .optional()
      .describe(
        'Shown once only, in the first answer: absent when the request is repeated under its Idempotency-Key. If the first answer was lost, rotate the secret.',
      ),
  })
  .meta({ id: 'CreatedApplication' });

export function applicationToShow(application: ShownApplication): z.output<typeof applicationOutput> {
  return {
    id: application.id,
    clientId: application.clientId,
    label: application.label,
    scopes: allScopes.filter((scope) => application.scopes.includes(scope)),
    isSuperuser: application.isSuperuser,
    alertEmail: application.alertEmail,
    createdAt: application.createdAt.toISOString(),
    secretSetAt: (application.secretSetAt ?? application.createdAt).toISOString(),
  };
}
