import { execFileSync } from 'node:child_process';
import type { HerautProcess } from './spawn-heraut.js';

const sampleEveryMs = 50;

/** How much memory processes have, all together, while something goes on. */
export class ProcessMemory {
  /** Megabytes in all, at the start. */
  readonly before: number;
  private highest: number;
  private readonly timer: NodeJS.Timeout;

  constructor(private readonly processes: HerautProcess[]) {
    this.before = this.highest = this.read();
    this.timer = setInterval(() => (this.highest = Math.max(this.highest, this.read())), sampleEveryMs).unref();
  }

  /** @returns megabytes by which it has grown at its highest */
  stop(): number {
    clearInterval(this.timer);
    return Math.max(this.highest, this.read()) - this.before;
  }

  private read(): number {
    const pids = this.processes.flatMap(({ pid }) => (pid === undefined ? [] : String(pid))).join(',');
    if (pids === '') return 0; // they have ended with a test that failed
    // Resident set sizes in kilobytes, one a line (POSIX ps).
    const lines = execFileSync('ps', ['-o', 'rss=', '-p', pids], { encoding: 'utf8' }).trim().split('\n');
    return lines.reduce((sum, line) => sum + Number(line), 0) / 1024;
  }
}
