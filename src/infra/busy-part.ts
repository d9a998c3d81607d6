import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';

/** Parts of a time, from 0 to 1. */
export interface BusyPart {
  /**
   * In which the event loop of this process was not idle, be it that it worked or that it was not given a processor.
   */
  process: number;
  /**
   * Of all processors of the machine, in which they worked for anybody. In a container, that is the machine around it.
   */
  machine: number;
}

interface CpuTimes {
  idle: number;
  total: number;
}

/** @returns a function that says how busy it was since its last call; the system counts in hundredths of a second */
export function busyPart(): () => BusyPart {
  let [loop, cpu] = [performance.eventLoopUtilization(), cpuTimes()];
  return () => {
    const [loopNow, cpuNow] = [performance.eventLoopUtilization(), cpuTimes()];
    const { utilization } = performance.eventLoopUtilization(loopNow, loop);
    const passed = cpuNow.total - cpu.total;
    const machine = passed > 0 ? 1 - (cpuNow.idle - cpu.idle) / passed : 0;
    [loop, cpu] = [loopNow, cpuNow];
    return { process: utilization, machine };
  };
}

/**
 * Not by `cpus()` on Linux: it counts neither waiting for a disk, which is idle, nor time that other virtual machines
 * took.
 */
function cpuTimes(): CpuTimes {
  return process.platform === 'linux' ? readStat(readFileSync('/proc/stat', 'latin1')) : sumOf(cpus());
}

/** proc(5): `cpu`, then user, nice, system, idle, iowait, irq, softirq and steal of all processors together. */
export function readStat(stat: string): CpuTimes {
  const times = stat.slice(0, stat.indexOf('\n')).trim().split(/\s+/).slice(1, 9).map(Number);
  const [, , , idle = 0, iowait = 0] = times;
  return { idle: idle + iowait, total: times.reduce((sum, time) => sum + time, 0) };
}

function sumOf(all: ReturnType<typeof cpus>): CpuTimes {
  const sum = { idle: 0, total: 0 };
  for (const { times } of all) {
    sum.idle += times.idle;
    sum.total += times.user + times.nice + times.sys + times.irq + times.idle;
  }
  return sum;
}
