import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';

export interface Load {
  /** Of the server. */
  url: string;
  token: () => string;
  channel: string;
  /** Notifications in all. */
  count: number;
  /** A second; undefined: as fast as they are answered. */
  rate: number | undefined;
  /** Open at once. */
  connections: number;
}

export interface LoadResult {
  /** Answered 201. */
  accepted: number;
  /** HTTP status, or the code of an error → how often. */
  others: Record<string, number>;
  seconds: number;
  /** Milliseconds each publication took; with a rate, from the time it was due: waiting for a slow server counts. */
  latencies: Float64Array;
}

/** Publishes. Ends early where `interrupted` says so: what is under way is finished. */
export async function load(
  { url, token, channel, count, rate, connections }: Load,
  interrupted: AbortSignal,
  progressed: (done: number) => void,
): Promise<LoadResult> {
  const { origin, pathname } = new URL(url);
  const path = `${pathname.replace(/\/$/, '')}/api/v1/notificaties`;
  const pool = new Pool(origin, { connections, pipelining: 1, headersTimeout: 60_000, bodyTimeout: 60_000 });
  const latencies = new Float64Array(count);
  const others: Record<string, number> = {};
  let [next, done, accepted] = [0, 0, 0];
  const startedAt = performance.now();
  const publish = async () => {
    while (next < count && !interrupted.aborted) {
      const nr = next++;
      const dueAt = rate === undefined ? performance.now() : startedAt + (nr * 1000) / rate;
      const waitMs = dueAt - performance.now();
      if (waitMs > 1) await pause(waitMs, undefined, { signal: interrupted }).catch(() => {});
      if (interrupted.aborted) return;
      const result = await publishOne(pool, path, token(), channel);
      latencies[done++] = performance.now() - dueAt;
      if (result === '201') accepted += 1;
      else others[result] = (others[result] ?? 0) + 1;
      progressed(done);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(connections, count) }, publish));
  } finally {
    await pool.close();
  }
  const seconds = (performance.now() - startedAt) / 1000;
  return { accepted, others, seconds, latencies: latencies.slice(0, done).toSorted() };
}

async function publishOne(pool: Pool, path: string, token: string, channel: string): Promise<string> {
  const about = `https://bench.heraut.example/objects/${randomUUID()}`;
  try {
    const { statusCode, body } = await pool.request({
      method: 'POST',
      path,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        kanaal: channel,
        hoofdObject: about,
        resource: 'bench',
        resourceUrl: about,
        actie: 'create',
        // One that lies ahead is refused, and the clock of this machine may be.
        aanmaakdatum: new Date(Date.now() - 60_000).toISOString(),
        kenmerken: {},
      }),
    });
    await body.dump();
    return String(statusCode);
  } catch (error) {
    return (error as { code?: string }).code ?? 'failed';
  }
}
