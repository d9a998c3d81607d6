import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from '../config/settings.js';
import { writeWhole } from '../secrets/key-file.js';

/**
 * The configured secret. With the embedded database and none configured, one is made at the first start and kept beside
 * the data, so that a first start needs no configuration, and still no two installations share a secret.
 */
export function superuserSecret(settings: Settings): string | undefined {
  if (settings.SUPERUSER_SECRET || settings.DATABASE_URL) return settings.SUPERUSER_SECRET;
  const file = join(settings.DATA_DIR, 'superuser-secret');
  const kept = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  // Empty: a start was interrupted, by a full disk for example, when it was not yet written as a whole.
  if (kept !== '') return kept;
  const secret = randomBytes(32).toString('base64url');
  writeWhole(file, `${secret}\n`);
  return secret;
}
