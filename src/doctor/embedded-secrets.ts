import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Settings } from '../config/settings.js';
import { reasonOf } from '../infra/cannot-connect.js';
import { isEmbeddedThere } from '../infra/postgres/embedded-is-there.js';
import { KeyRingRefused } from '../secrets/key-ring.js';
import { openKeyRing } from '../secrets/open-secrets.js';
import { failed, ok, skipped, type Finding } from './finding.js';

export const adviceOnKeys =
  'No process starts like this. Put the key back; docs/running.md, Secrets, says what to do if it is lost.';

/** Whether there is a key for what is in the embedded database. The process that has it open could tell if it fits. */
export function examineEmbeddedKeys(settings: Settings): Finding {
  const name = 'secret-keys';
  const file = join(resolve(settings.DATA_DIR), 'secret-keys');
  try {
    const ring = openKeyRing(settings, false);
    if (ring.size > 0) {
      const place = settings.SECRET_KEYS ? 'in SECRET_KEYS' : `in ${settings.SECRET_KEYS_FILE ?? file}`;
      return ok(name, `secrets in the database are encrypted; their key is ${place}`);
    }
    if (!isEmbeddedThere(settings.DATA_DIR))
      return ok(name, `secrets in the database are encrypted; their key is made at the first start, in ${file}`);
    return failed(
      name,
      `${file} is not there: what is encrypted in the database cannot be read.`,
      `${adviceOnKeys} Where nothing is encrypted yet, the start makes one.`,
    );
  } catch (error) {
    if (error instanceof KeyRingRefused) return failed(name, error.message, adviceOnKeys);
    return skipped(name, `the data directory cannot be looked into: ${reasonOf(error)}`);
  }
}

/** The secret that the first start made, or will make. */
export function examineKeptSuperuser({ DATA_DIR }: Settings): Finding {
  const name = 'superuser';
  const file = join(resolve(DATA_DIR), 'superuser-secret');
  try {
    if (readFileSync(file, 'utf8').trim() !== '') return ok(name, `its secret is in ${file}`);
    return failed(name, `${file} is empty: there is no superuser.`, 'Start Heraut again, which makes another.');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return ok(name, 'its secret is made at the first start, and kept in DATA_DIR');
    return failed(
      name,
      `${file} cannot be read: ${reasonOf(error)}`,
      'No process starts like this. Make the user of Heraut its owner (chown), or set SUPERUSER_SECRET.',
    );
  }
}
