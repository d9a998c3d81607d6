import type { EntityManager } from 'typeorm';
import type { Postgres, Query } from '../../src/infra/postgres/postgres.js';
import type { Statement, Values } from '../../src/infra/postgres/statement.js';

/** The result of a step that crosses a network. */
export type Fate =
  | 'works'
  /** Nothing happened, and the caller is told so. */
  | 'fails'
  /** It happened, and the caller is told that it did not. */
  | 'works-unheard';

interface Gate {
  process: number;
  what: string;
  open: (fate: Fate) => Promise<void>;
}

/** Every step of every process waits here until it is let through, so that any order of steps can be played. */
export class Gates {
  private waiting: Gate[] = [];
  private readonly closed = new Set<number>();
  private underWay = 0;
  private changes = 0;
  private whenIdle: (() => void)[] = [];
  /** Steps let through so far. */
  worked = 0;

  /**
   * @param onStep is told of each step before it is let through
   * @param onRows is told what the ledger answered, also where the process does not hear it
   */
  constructor(
    private readonly onStep: (process: number, what: string, fate: Fate) => void,
    readonly onRows: (process: number, statement: string, rows: readonly unknown[]) => void,
  ) {}

  /** Waits for its turn; for ever if the process dies before. */
  step<T>(process: number, what: string, work: () => Promise<T>): Promise<T> {
    if (this.closed.has(process)) return new Promise(() => {}); // a timer of it still ran
    this.changes++;
    return new Promise((resolve, reject) => {
      const open = async (fate: Fate) => {
        if (fate === 'fails') return reject(connectionLost());
        this.worked++;
        try {
          const result = await this.busy(work);
          if (fate === 'works') resolve(result);
          else reject(connectionLost());
        } catch (error) {
          reject(error as Error);
        }
      };
      this.waiting.push({ process, what, open });
    });
  }

  /** For work that waits at no gate, but must be over before the next step. */
  async busy<T>(work: () => Promise<T>): Promise<T> {
    this.underWay++;
    try {
      return await work();
    } finally {
      this.underWay--;
      this.changes++;
      if (this.underWay === 0) for (const tell of this.whenIdle.splice(0)) tell();
    }
  }

  /** Lets `count` steps through, beginning with the `pick`-th of those of the processes that `mayGo`. */
  async open(pick: number, fate: Fate, mayGo: (process: number) => boolean, count = 1): Promise<string[]> {
    const candidates = this.waiting.filter((gate) => mayGo(gate.process));
    const chosen = new Set<Gate>();
    for (let i = 0; i < Math.min(count, candidates.length); i++)
      chosen.add(candidates[(pick + i) % candidates.length]!);
    this.waiting = this.waiting.filter((gate) => !chosen.has(gate));
    for (const { process, what } of chosen) this.onStep(process, what, fate);
    await Promise.all([...chosen].map((gate) => gate.open(fate)));
    return [...chosen].map((gate) => `${gate.process} ${gate.what}`);
  }

  /** The steps of a dead process are never let through. */
  close(process: number): void {
    this.closed.add(process);
    this.waiting = this.waiting.filter((gate) => gate.process !== process);
  }

  get count(): number {
    return this.waiting.length;
  }

  clear(): void {
    this.waiting = [];
  }

  /** Resolves when every process waits at a gate, for time to pass, or for another process. */
  async quiet(): Promise<void> {
    for (let rounds = 0; rounds < 4;) {
      // A database needs a millisecond, in which the event loop would turn a hundred times.
      if (this.underWay > 0) await new Promise<void>((resolve) => this.whenIdle.push(resolve));
      const before = this.changes;
      await new Promise((resolve) => setImmediate(resolve));
      rounds = this.underWay > 0 || this.changes !== before ? 0 : rounds + 1;
    }
  }
}

const connectionLost = () => Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });

/** Reading the catalogue: of no interest here, so no step of its own. */
const isAside = ({ name }: Statement) => /^(catalogue-version|.*-since)$/.test(name);
/** Regular reports of a process: no step of their own. */
const isBeat = ({ name }: Statement) => /^(heartbeat|processes-ended|record-progress)$/.test(name);

/** The database as one process of the model sees it: each statement and each transaction is a step of its own. */
export function seenBy(process: { number: number; mayGo: boolean }, postgres: Postgres, gates: Gates): Postgres {
  const step = <T>(statement: Statement, work: () => Promise<T>): Promise<T> => {
    if (isBeat(statement) && !process.mayGo) return new Promise(() => {});
    return isBeat(statement) || isAside(statement)
      ? gates.busy(work)
      : gates.step(process.number, statement.name, work);
  };
  const query = (statement: Statement, values?: Values) =>
    step(statement, async () => {
      const rows = await postgres.query<object>(statement, values);
      gates.onRows(process.number, statement.name, rows);
      return rows;
    });
  const affected = (statement: Statement, values?: Values) =>
    step(statement, () => postgres.affected(statement, values));
  const transaction = (work: (query: Query) => Promise<unknown>) =>
    gates.step(process.number, 'transaction', () => postgres.transaction(work));
  const change = (work: (manager: EntityManager) => Promise<unknown>) =>
    gates.step(process.number, 'change', () => postgres.dataSource.transaction(work));
  const dataSource = replacing(postgres.dataSource, { transaction: change });
  return replacing(postgres, { query, affected, transaction, dataSource });
}

/** The same thing but for some of its members. */
function replacing<T extends object>(whole: T, members: Record<string, unknown>): T {
  return new Proxy(whole, {
    get: (target, name) => (name in members ? members[name as string] : Reflect.get(target, name)),
  });
}
