import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';

/** By its path; undefined: it is not there. */
type Read = (path: string) => string | undefined;

/**
 * The least quota of the control groups that this process is in, in parts of a core: Node before 24 does not see it. A
 * container sees its own group as the root of the tree, or is told a path that is not there.
 */
export function cpuQuota(read: Read = readIfThere): number {
  const groups = (read('/proc/self/cgroup') ?? '').trim().split('\n');
  const quotas = groups.flatMap((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === undefined) return [];
    if (controllers === '') return withParents(path).map((group) => current(read, join('/sys/fs/cgroup', group)));
    if (!controllers!.split(',').includes('cpu')) return [];
    return withParents(path).map((group) => older(read, join('/sys/fs/cgroup/cpu', group)));
  });
  return Math.min(Infinity, ...quotas.filter((quota) => quota > 0));
}

const withParents = (path: string): string[] => (path === '/' ? [path] : [path, ...withParents(dirname(path))]);

function current(read: Read, group: string): number {
  const [quota, period] = (read(join(group, 'cpu.max')) ?? '').trim().split(' ');
  return Number(quota) / Number(period); // NaN without a quota, which is `max`
}

function older(read: Read, group: string): number {
  return Number(read(join(group, 'cpu.cfs_quota_us'))) / Number(read(join(group, 'cpu.cfs_period_us')));
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
