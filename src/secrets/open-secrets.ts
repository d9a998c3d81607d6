import type { LoggerService } from '@nestjs/common';
import type { Settings } from '../config/settings.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { embeddedKeyRing, readKeyFile } from './key-file.js';
import { keyRingOf, KeyRingRefused, type KeyRing } from './key-ring.js';
import { SecretCipher, UnreadableSecret } from './secret-cipher.service.js';
import { plain, rewriteSecrets, sampleByKey } from './stored-secrets.js';

/**
 * The cipher of this process: with the key ring of the settings, that of the embedded database, or none. With one,
 * whatever is stored in plain text is encrypted first.
 * @throws {KeyRingRefused} with the ids of the keys that are missing or wrong; then nothing has been changed
 */
export async function openSecrets(
  settings: Settings,
  postgres: Postgres,
  logger: Pick<LoggerService, 'log' | 'warn'>,
): Promise<SecretCipher> {
  const cipher = await openCipher(settings, postgres);
  if (cipher.keyId === undefined) {
    // Where there are several processes, one of them says it.
    if (settings.ROLES.includes('dispatcher'))
      logger.warn({
        event: 'secrets.not-encrypted',
        remedy: 'Secrets are readable in the database. Set SECRET_KEYS or SECRET_KEYS_FILE: docs/running.md#secrets.',
      });
    return cipher;
  }
  const counts = new Map<string, number>();
  await rewriteSecrets(postgres, cipher, [plain], (place, count) =>
    counts.set(place, (counts.get(place) ?? 0) + count),
  );
  for (const [place, count] of counts) logger.log({ event: 'secrets.encrypted', place, count, key: cipher.keyId });
  return cipher;
}

/**
 * The same, without encrypting what is not.
 * @throws {KeyRingRefused}
 */
export async function openCipher(settings: Settings, postgres: Pick<Postgres, 'query'>): Promise<SecretCipher> {
  const samples = await sampleByKey(postgres);
  const cipher = new SecretCipher(openKeyRing(settings, samples.length === 0));
  const troubles = new Map<string, string>();
  for (const { keyId, stored, place } of samples) {
    try {
      cipher.decrypt(stored, place);
    } catch (error) {
      if (!(error instanceof UnreadableSecret)) throw error;
      troubles.set(keyId, error.message);
    }
  }
  if (troubles.size === 0) return cipher;
  const ids = [...troubles.keys()].join(', ');
  throw new KeyRingRefused(
    [
      `Stored secrets are encrypted with keys that are missing here, or are others under the same ids: ${ids}. Nothing was changed.`,
      ...[...troubles.values()].map((trouble) => `  ${trouble}`),
      'Add these keys to SECRET_KEYS, to the file of SECRET_KEYS_FILE, or to secret-keys in DATA_DIR: docs/running.md#secrets.',
    ].join('\n'),
  );
}

/** @param mayMake whether the embedded database may be given a key */
export function openKeyRing(settings: Settings, mayMake: boolean): KeyRing {
  if (settings.SECRET_KEYS) return keyRingOf(settings.SECRET_KEYS, 'SECRET_KEYS');
  if (settings.SECRET_KEYS_FILE) return readKeyFile(settings.SECRET_KEYS_FILE);
  return settings.DATABASE_URL ? new Map() : embeddedKeyRing(settings.DATA_DIR, mayMake);
}
