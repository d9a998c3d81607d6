import { randomUUID } from 'node:crypto';
import { once, type EventEmitter } from 'node:events';
import pg from 'pg';
import { queryOnce } from './database.js';
import { eventually } from './eventually.js';

/** A connection of `pg`, of which its types tell nothing. */
interface Wire extends EventEmitter {
  sendCopyFromChunk(chunk: Buffer): void;
}

/**
 * Connects as a standby does that has `hot_standby_feedback` and no replication slot, whose queries may see what a
 * snapshot did. No vacuum removes that meanwhile, in whichever database of the server: it should be one of the test
 * alone.
 * @param xmin of the snapshot
 * @returns ends it
 */
export async function connectStandby(databaseUrl: string, xmin: string): Promise<() => Promise<void>> {
  const name = `standby-${randomUUID()}`;
  const [now] = await queryOnce<{ wal: string }>(databaseUrl, 'SELECT pg_current_wal_flush_lsn() AS wal');
  const url = new URL(databaseUrl);
  url.searchParams.set('replication', 'true');
  const client = new pg.Client({ connectionString: url.href, application_name: name });
  await client.connect();
  const wire = (client as unknown as { connection: Wire }).connection;
  const started = once(wire, 'replicationStart');
  client.query(`START_REPLICATION PHYSICAL ${now!.wal}`).catch(() => {}); // it ends with the connection
  await started;
  const feedback = Buffer.alloc(25);
  feedback.write('h');
  feedback.writeUInt32BE(Number(BigInt(xmin) & 0xffffffffn), 9);
  feedback.writeUInt32BE(Number(BigInt(xmin) >> 32n), 13);
  wire.sendCopyFromChunk(feedback);
  const heard = () =>
    queryOnce(
      databaseUrl,
      `SELECT FROM pg_stat_replication WHERE application_name = '${name}' AND backend_xmin IS NOT NULL`,
    );
  await eventually(async () => (await heard()).length === 1, 'the server to have heard of it');
  return () => client.end();
}
