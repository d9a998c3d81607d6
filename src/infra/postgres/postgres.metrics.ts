import { Gauge } from 'prom-client';

/** The fields that are read of a pool of pg. */
interface Pool {
  totalCount: number;
  idleCount: number;
  waitingCount: number;
}

/** By the name of the pool in its label. */
export type Pools = Readonly<Record<string, Pool>>;

const open = new Set<Pools>();

new Gauge({
  name: 'heraut_postgres_connections',
  help: 'Connections to Postgres, by pool (hot: accepting and delivering; rest: the admin API and the like; upkeep: migrations and partitions; checks: health checks) and by state (used, idle).',
  labelNames: ['pool', 'state'],
  collect() {
    this.reset();
    for (const [pool, { totalCount, idleCount }] of all()) {
      this.inc({ pool, state: 'used' }, totalCount - idleCount);
      this.inc({ pool, state: 'idle' }, idleCount);
    }
  },
});

new Gauge({
  name: 'heraut_postgres_waiting',
  help: 'Statements and transactions that wait for a connection of their pool.',
  labelNames: ['pool'],
  collect() {
    this.reset();
    for (const [pool, { waitingCount }] of all()) this.inc({ pool }, waitingCount);
  },
});

export const requestsInLine = new Gauge({
  name: 'heraut_postgres_requests_in_line',
  help: 'Changes and searches of callers that wait for their turn at a connection of the pool `rest`.',
});

/** Counts these until what is returned is called. */
export function countPools(pools: Pools): () => void {
  open.add(pools);
  return () => void open.delete(pools);
}

const all = () => [...open].flatMap((pools) => Object.entries(pools));
