import * as z from 'zod';
import { secretPrefixes, signingSchemes } from '../signing/signing-key.js';
import type { AddedSigningKey } from './add-signing-key.js';
import { usualGraceSeconds, type ShownSigningKey } from './signing-key-rows.js';

/** Longer than any secret with its prefix. */
export const maxSecretLength = 128;

const secret = z
  .string()
  .max(maxSecretLength)
  .optional()
  .describe(
    `A secret of your own: \`${secretPrefixes.v1}\` and 24 to 64 bytes, or \`${secretPrefixes.v1a}\` and seed and public key, in base64; the prefix may be left out. Not given: one is made.`,
  );

export const newSigningKeyInput = z
  .strictObject({
    scheme: z
      .enum(signingSchemes)
      .default('v1')
      .describe(
        '`v1`: HMAC-SHA256, with a secret that both sides have. `v1a`: Ed25519; receivers need the public key.',
      ),
    secret,
  })
  .meta({ id: 'NewSigningKey' });

export const rotationInput = z
  .strictObject({
    graceSeconds: z
      .int()
      .min(0)
      .max(7 * usualGraceSeconds)
      .default(usualGraceSeconds)
      .describe('How long deliveries are signed with the old key as well. 0: not at all.'),
    secret,
  })
  .meta({ id: 'SigningKeyRotation' });

export const signingKeyOutput = z
  .strictObject({
    id: z.uuid(),
    scheme: z.enum(signingSchemes),
    publicKey: z.string().nullable().describe('Of `v1a`, with the prefix `whpk_`; for receivers. null: of `v1`.'),
    createdAt: z.iso.datetime(),
    endsAt: z.iso
      .datetime()
      .nullable()
      .describe('When it signs no more, because it was rotated. null: it has not been rotated.'),
  })
  .meta({ id: 'SigningKey' });

export const addedSigningKeyOutput = z
  .strictObject({
    ...signingKeyOutput.shape,
    secret: z
      .string()
      .optional()
      .describe('Of `v1`, where it was made here. Shown this once: if it was lost, rotate the key.'),
  })
  .meta({ id: 'AddedSigningKey' });

export const signingKeyListOutput = z
  .strictObject({ signingKeys: z.array(signingKeyOutput).describe('The newest first.') })
  .meta({ id: 'SigningKeyList' });

export const signingKeyToShow = ({
  createdAt,
  endsAt,
  ...key
}: ShownSigningKey): z.output<typeof signingKeyOutput> => ({
  ...key,
  createdAt: createdAt.toISOString(),
  endsAt: endsAt?.toISOString() ?? null,
});

export const addedToShow = ({ key, secret: shown }: AddedSigningKey): z.output<typeof addedSigningKeyOutput> => ({
  ...signingKeyToShow(key),
  ...(shown !== undefined && { secret: shown }),
});
