import type { LoggerService } from '@nestjs/common';
import cluster, { type Worker } from 'node:cluster';
import { shutdownDelayMs } from '../config/server-settings.js';
import type { Settings } from '../config/settings.js';
import { forwardLines, type LineWriter } from './forward-lines.js';
import type { ToProcess, ToSupervisor } from './messages.js';
import { MetricTotals, type MetricSnapshot } from './metric-totals.js';
import { environmentOf, heapOptions, thisMachine } from './process-plan.js';
import { longLifeMs, restartDelayMs } from './restart-delay.js';
import { supervisorMetrics } from './supervisor.metrics.js';

/** A process that answers none of `mostUnanswered` questions in a row hangs: no timer and no socket of it is served. */
const [askEveryMs, mostUnanswered] = [3000, 6];
/** A scrape goes on without a process that does not tell its metrics in this time. */
const metricsWithinMs = 1000;
/**
 * A process that starts is told which ones have ended so long before. Longer ago, their heartbeats have expired long
 * since.
 */
const toldForMs = 60_000;
/**
 * The last lines of an ended process are read for so long. It takes longer only when nobody reads the log of the
 * supervisor.
 */
const restReadWithinMs = 1000;
/** Of the 15 s that stopping may take, after SHUTDOWN_DELAY_SEC. A process ends itself before that, unless it hangs. */
const longestShutdownMs = 14_800;

interface Child {
  /** From 1. Its successor has the same. */
  number: number;
  worker: Worker;
  startedAt: number;
  /** Ports that it listens on. */
  listening: number;
  /** Questions in a row. */
  unanswered: number;
  /** By its heartbeat; undefined: it has not announced itself yet. */
  id?: string;
  onMetrics?: (() => void) | undefined;
}

/**
 * Starts the processes of `PROCESSES`, gives them the connections to the port in turn, starts one again that ends, and
 * ends with them. It has no role, opens no server and waits for nothing; it passes on what they tell each other, and
 * tells the others when one has ended. The first process starts alone: it migrates, and when it cannot start, no other
 * would. When the supervisor is killed, each process notices and ends by itself.
 */
export class Supervisor {
  private state: 'starting' | 'running' | 'stopping' | 'ended' = 'starting';
  private readonly children = new Map<number, Child>();
  /** How often in a row a process has ended, by its number. */
  private readonly endings = new Map<number, number>();
  private readonly restarts = new Set<NodeJS.Timeout>();
  private readonly totals = new MetricTotals();
  private readonly metrics = supervisorMetrics();
  private scrape = 0;
  /** Questions for capacity so far, which decide whose turn it is. */
  private asked = 0;
  private scraping: Promise<string> | undefined;
  /** Of the last minute, at least; `at` by `performance.now()`. */
  private lastEnds: { id: string; at: number }[] = [];
  private status = 0;
  private end: (status: number) => void = () => {};

  constructor(
    private readonly count: number,
    private readonly settings: Settings,
    private readonly environment: Record<string, string | undefined>,
    private readonly logger: LoggerService,
    private readonly output: LineWriter,
  ) {}

  /** @returns the exit status, when all processes have ended */
  async run(): Promise<number> {
    const given = [...process.execArgv, this.environment.NODE_OPTIONS].join(' ');
    cluster.setupPrimary({
      // Options of Node and V8 that this process was started with are those of all.
      execArgv: [...process.execArgv, ...heapOptions(this.count, thisMachine(), given)],
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      serialization: 'advanced', // JSON has no NaN, and metrics do
    });
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => this.stop(signal));
    const asking = setInterval(() => this.askAll(), askEveryMs);
    this.logger.log({ event: 'supervisor.started', processes: this.count });
    const ended = new Promise<number>((resolve) => (this.end = resolve));
    this.start(1);
    const status = await ended;
    clearInterval(asking);
    this.logger.log({ event: 'supervisor.stopped' });
    return status;
  }

  private start(number: number): void {
    const isFirstStart = this.state === 'starting';
    const environment = environmentOf(this.settings, this.environment, number, this.count, isFirstStart);
    let worker: Worker;
    try {
      worker = cluster.fork(environment);
    } catch (error) {
      return this.cannotStart(number, error);
    }
    const child: Child = { number, worker, startedAt: performance.now(), listening: 0, unanswered: 0 };
    this.children.set(worker.id, child);
    worker.on('message', (message: ToSupervisor) => this.read(child, message));
    worker.on('listening', () => this.listens(child));
    worker.on('error', (error) => {
      const { pid } = worker.process;
      this.logger.error({ event: 'process.failed', process: number, pid, error });
      if (pid === undefined) this.ends(child, null, null); // it could not even be started
    });
    // Not `exit`: by then not all that it logged has been read.
    worker.process.once('close', (status, signal) => this.ends(child, status, signal));
    const { stdout } = worker.process;
    if (!stdout) return;
    forwardLines(stdout, this.output);
    // There is no `close` before the end of its output.
    worker.process.once('exit', () => setTimeout(() => stdout.destroy(), restReadWithinMs));
  }

  /**
   * Node throws where the system refuses a process for a cause that is not on a short list of its own: for want of
   * memory, say.
   */
  private cannotStart(number: number, error: unknown): void {
    this.logger.error({ event: 'process.failed', process: number, error });
    if (this.state === 'starting') return this.finish(1);
    this.startAgain(number, performance.now(), { event: 'process.ended', process: number, status: null });
  }

  private listens(child: Child): void {
    child.listening++;
    const ports = this.settings.ADMIN_PORT === undefined ? 1 : 2;
    if (this.state !== 'starting' || child.listening < ports) return;
    this.state = 'running';
    for (let number = 2; number <= this.count; number++) this.start(number);
  }

  private ends(child: Child, status: number | null, signal: NodeJS.Signals | null): void {
    if (!this.children.delete(child.worker.id)) return;
    this.totals.end(child.worker.id);
    child.onMetrics?.();
    this.tellOfEnd(child);
    const ended = { event: 'process.ended', process: child.number, pid: child.worker.process.pid, status, signal };
    switch (this.state) {
      case 'starting':
        // With a status of its own, it has said why.
        if (status === null) this.logger.error(ended);
        return this.finish(status || 1);
      case 'running':
        return this.startAgain(child.number, child.startedAt, ended);
      case 'stopping':
        // By the signal itself, ours or that of a terminal to all: it had not got as far as to listen to it.
        if (status !== 0 && signal !== 'SIGTERM' && signal !== 'SIGINT') {
          this.logger.error(ended);
          this.status = 1;
        }
        if (this.children.size === 0) this.finish(this.status);
        return;
      case 'ended':
        return;
    }
  }

  private startAgain(
    number: number,
    startedAt: number,
    ended: { event: string; process: number; status: number | null },
  ): void {
    this.metrics.ended.inc();
    const livedLong = performance.now() - startedAt >= longLifeMs;
    const endings = livedLong ? 1 : (this.endings.get(number) ?? 0) + 1;
    this.endings.set(number, endings);
    const delayMs = restartDelayMs(endings);
    this.logger[ended.status === 0 ? 'warn' : 'error']({ ...ended, startsAgainInMs: delayMs });
    const timer = setTimeout(() => {
      this.restarts.delete(timer);
      this.start(number);
    }, delayMs);
    this.restarts.add(timer);
  }

  /** All are told: one of them may hang, or have been killed at the same moment. */
  private tellOfEnd({ id }: Child): void {
    if (id === undefined) return;
    this.lastEnds.push({ id, at: performance.now() });
    for (const child of this.children.values())
      if (child.id !== undefined) tell(child, { kind: 'sibling-ended', process: id });
  }

  private announces(child: Child, id: string): void {
    child.id = id;
    const since = performance.now() - toldForMs;
    this.lastEnds = this.lastEnds.filter(({ at }) => at > since);
    for (const { id: process } of this.lastEnds) tell(child, { kind: 'sibling-ended', process });
  }

  /** Every process stops in order, and is killed if it hangs. */
  private stop(reason: NodeJS.Signals): void {
    if (this.state === 'ended') return;
    const isFurther = this.state === 'stopping';
    this.state = 'stopping';
    for (const { worker } of this.children.values()) worker.process.kill('SIGTERM'); // a further one ends their delay
    if (isFurther) return;
    this.logger.log({ event: 'supervisor.stopping', reason });
    for (const timer of this.restarts) clearTimeout(timer);
    if (this.children.size === 0) return this.finish(this.status);
    setTimeout(
      () => {
        for (const { worker } of this.children.values()) worker.process.kill('SIGKILL');
        this.logger.error({ event: 'supervisor.stopped-late' });
        this.finish(1);
      },
      shutdownDelayMs(this.settings) + longestShutdownMs,
    ).unref();
  }

  private finish(status: number): void {
    this.state = 'ended';
    this.end(status);
  }

  private askAll(): void {
    for (const child of this.children.values()) {
      // Questions are counted, not time: after the machine was suspended, the first question has not been answered yet
      // either.
      if (child.unanswered >= mostUnanswered) {
        const { pid } = child.worker.process;
        this.logger.error({ event: 'process.unresponsive', process: child.number, pid });
        child.worker.process.kill('SIGKILL');
      }
      child.unanswered++;
      tell(child, { kind: 'are-you-there' });
    }
  }

  private read(child: Child, message: ToSupervisor): void {
    switch (message.kind) {
      case 'here':
        child.unanswered = 0;
        return;
      case 'announce':
        return this.announces(child, message.process);
      case 'metrics':
        if (!this.children.has(child.worker.id)) return; // the counts that it had told before are added already
        this.totals.tell(child.worker.id, message.metrics);
        // A late answer to an earlier scrape does not end the wait of this one.
        if (message.scrape === this.scrape) child.onMetrics?.();
        return;
      case 'ask-all-metrics':
        return void this.allMetrics().then((text) =>
          tell(child, { kind: 'all-metrics', request: message.request, text }),
        );
      case 'ask-capacity':
        return tell(this.siblingOf(child), { ...message, from: child.worker.id });
      case 'capacity':
        return tell(this.children.get(message.to), { ...message, from: child.worker.id });
      case 'hand-over':
        return tell(this.children.get(message.to), { kind: 'handed-over', message: message.message });
    }
  }

  /** Each has its turn, whichever of them asks. */
  private siblingOf(child: Child): Child | undefined {
    const siblings = [...this.children.values()].filter((other) => other !== child);
    return siblings[this.asked++ % siblings.length];
  }

  /** Scrapes that come together share one look at all processes. */
  private allMetrics(): Promise<string> {
    this.scraping ??= this.scrapeAll().finally(() => (this.scraping = undefined));
    return this.scraping;
  }

  private async scrapeAll(): Promise<string> {
    const scrape = ++this.scrape;
    const answers = [...this.children.values()].map(
      (child) =>
        new Promise<void>((resolve) => {
          child.onMetrics = resolve;
          tell(child, { kind: 'ask-metrics', scrape });
        }),
    );
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, metricsWithinMs)));
    await Promise.race([Promise.all(answers), timeout]);
    clearTimeout(timer);
    this.metrics.running.set(this.children.size);
    return this.totals.text((await this.metrics.registry.getMetricsAsJSON()) as unknown as MetricSnapshot);
  }
}

/** Does nothing where the process is gone. */
function tell(child: Child | undefined, message: ToProcess): void {
  // Fails only for a process that has just ended, which is noticed by `close`.
  child?.worker.send(message, () => {});
}
