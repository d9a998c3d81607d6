import * as z from 'zod';
import { alertRulesInput } from '../alerts/alert-rules.js';
import { applicationChangesInput, newApplicationInput } from '../auth/applications-io.js';
import { newChannelInput } from '../channels/channels-io.js';
import { headerValue } from '../credentials/check-headers.js';
import {
  headersInput,
  headerText,
  identityInput,
  maxAuthLength,
  oauth2Input,
  zgwInput,
} from '../credentials/credentials-io.js';
import { policyOverrideInput } from '../retry-policy/policy-input.js';
import { signingSchemes } from '../signing/signing-key.js';
import { maxSecretLength } from '../subscriptions/signing-keys-io.js';
import { channelsInput, inputText as text, webUrl } from '../subscriptions/subscription-input.js';
import { longestCallbackUrl } from '../subscriptions/subscription-limits.js';
import { subscriptionSettingsInput } from '../subscriptions/subscriptions-io.js';

/*
 * The form of a configuration, once its references are resolved. A field that the admin API has too has the same name
 * and limits here. A field that is left out stays as it is, and of what is new it gets the default.
 */

export const applicationEntry = applicationChangesInput
  .extend({
    clientId: newApplicationInput.shape.clientId.describe('The `client_id` of its tokens, by which it is known.'),
    scopesIfNew: applicationChangesInput.shape.scopes.describe(
      'Its permissions where it is new and `scopes` is left out; those that it has later stay.',
    ),
  })
  .meta({ id: 'ConfiguredApplication' });

export const channelEntry = newChannelInput
  .extend({
    name: newChannelInput.shape.name.describe('By which it is known.'),
    documentationLink: newChannelInput.shape.documentationLink.describe(
      'A page that describes its notifications. It is not fetched.',
    ),
  })
  .meta({ id: 'ConfiguredChannel' });

const stays = 'Left out: the one there is stays.';
const tls = identityInput.extend({ key: identityInput.shape.key.describe(`In PEM, without a passphrase. ${stays}`) });

const verbatimEntry = z.strictObject({
  kind: z.literal('verbatim'),
  auth: z
    .string()
    .trim()
    .max(maxAuthLength)
    .regex(headerValue, 'Holds a character that cannot be sent in a header.')
    .optional()
    .describe(`The literal value of the \`Authorization\` header; empty: none. ${stays}`),
});
const zgwEntry = zgwInput.extend({ secret: zgwInput.shape.secret.optional().describe(`HS256 key. ${stays}`) });
const oauth2Entry = oauth2Input.extend({
  clientSecret: oauth2Input.shape.clientSecret.optional().describe(stays),
  tokenTls: tls.nullable().default(null).describe('For the token endpoint.'),
});

export const subscriptionEntry = subscriptionSettingsInput
  .extend({
    id: z
      .uuidv4('Not a UUID of version 4, which clients expect in the URL of an abonnement.')
      .toLowerCase()
      .describe('By which it is known; `uuidgen` makes one.'),
    ownerClientId: text(255)
      .optional()
      .describe('Client id of the application it belongs to. New, and left out: the superuser of the settings.'),
    callbackUrl: webUrl(longestCallbackUrl)
      .optional()
      .describe('The webhook. It is not called by way of trial; a changed one enables a disabled subscription.'),
    channels: channelsInput.optional(),
    isPaused: z.boolean().optional().describe('true: what is for it is held.'),
    authorization: z
      .discriminatedUnion('kind', [verbatimEntry, zgwEntry, oauth2Entry])
      .optional()
      .describe(
        'The source of the `Authorization` header of each call. Replaced as a whole, but for secrets left out.',
      ),
    tls: tls.nullable().optional().describe('For the receiver. null: none of its own.'),
    headers: headersInput(headerText.nullable())
      .nullable()
      .optional()
      .describe('Sent with each call. The value null: the one there is stays. null: none.'),
    signingKeys: z
      .array(
        z.strictObject({
          scheme: z.enum(signingSchemes).default('v1'),
          secret: z
            .string()
            .max(maxSecretLength)
            .optional()
            .describe(
              '`whsec_` and 24 to 64 bytes, or `whsk_` with seed and public key, in base64. Left out: one there is stays.',
            ),
        }),
      )
      .max(5)
      .optional()
      .describe('Its keys. One that another takes the place of goes on to sign for a day.'),
    retryPolicy: policyOverrideInput
      .nullable()
      .optional()
      .describe('Fields in which it differs from the general retry policy. null, or {}: in none.'),
  })
  .meta({ id: 'ConfiguredSubscription' });

export const configurationSchema = z
  .strictObject({
    applications: z.array(applicationEntry).describe('Credentials, by `clientId`.'),
    channels: z.array(channelEntry).describe('By `name`. None is removed.'),
    subscriptions: z.array(subscriptionEntry).describe('By `id`.'),
    retryPolicy: policyOverrideInput.describe('The general one.'),
    alertRules: alertRulesInput.describe(
      'When operators, and owners of subscriptions, are told that something is wrong.',
    ),
  })
  .partial()
  .meta({
    id: 'WantedConfiguration',
    description:
      'The wanted state. A thing it does not name stays, unless it is pruned; a field that is left out stays as it is.',
  });

export type Configuration = z.output<typeof configurationSchema>;
export type ConfiguredApplication = z.output<typeof applicationEntry>;
export type ConfiguredChannel = z.output<typeof channelEntry>;
export type ConfiguredSubscription = z.output<typeof subscriptionEntry>;
