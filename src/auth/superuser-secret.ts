import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from '../config/settings.js';

/**
 * The configured secret. With the embedded database and none configured, one is made at the first start and kept beside
 * the data, so that a first start needs no configuration, and still no two installations share a secret.
 */
export function superuserSecret(settings: Settings): string | undefined {
  if (settings.SUPERUSER_SECRET || settings.DATABASE_URL) return settings.SUPERUSER_SECRET;
  const file = join(settings.DATA_DIR, 'superuser-secret');
  if (!existsSync(file)) writeFileSync(file, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600 });
  return readFileSync(file, 'utf8').trim();
}
