import { cpus } from 'node:os';

/** Parts of a time, from 0 to 1. */
export interface BusyPart {
  /** In which the event loop of this process was not idle, be it that it worked or that it was not given a processor. */
  process: number;
  /** Of all processors of the machine, in which they worked for anybody. In a container, that is the machine around it. */
  machine: number;
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

function cpuTimes(): { idle: number; total: number } {
  const sum = { idle: 0, total: 0 };
  for (const { times } of cpus()) {
    sum.idle += times.idle;
    sum.total += times.user + times.nice + times.sys + times.irq + times.idle;
  }
  return sum;
}
