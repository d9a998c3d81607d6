import { migrations } from '../../../migrations/index.js';

/** Of this version, in the order they run; the table `migrations` has those that have run. */
export const migrationNames: readonly string[] = migrations.map((Migration) => new Migration().name);
