import { describe, expect, it } from 'vitest';
import { cpuQuota } from './cpu-quota.js';

const quotaOf = (files: Record<string, string>) => cpuQuota((path) => files[path]);

describe('the CPU quota of this process', () => {
  it('is that of its container, in parts of a core', () => {
    expect(quotaOf({ '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/cpu.max': '150000 100000\n' })).toBe(1.5);
  });

  it('is that of its unit, or of a slice above, whichever is less', () => {
    const files = {
      '/proc/self/cgroup': '0::/heraut.slice/heraut.service\n',
      '/sys/fs/cgroup/heraut.slice/heraut.service/cpu.max': '400000 100000\n',
      '/sys/fs/cgroup/heraut.slice/cpu.max': '200000 100000\n',
    };
    expect(quotaOf(files)).toBe(2);
    expect(quotaOf({ ...files, '/sys/fs/cgroup/heraut.slice/cpu.max': 'max 100000\n' })).toBe(4);
  });

  it('is read in the older form as well, whose path a container does not see', () => {
    const group = '4:memory:/docker/0a1b\n3:cpu,cpuacct:/docker/0a1b\n0::/\n';
    const files = {
      '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '50000\n',
      '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
    };
    expect(quotaOf({ '/proc/self/cgroup': group, ...files })).toBe(0.5);
    expect(quotaOf({ '/proc/self/cgroup': group, ...files, '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n' })).toBe(
      Infinity,
    );
  });

  it('is none where nothing sets it, or no such file is there', () => {
    expect(quotaOf({ '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/cpu.max': 'max 100000\n' })).toBe(Infinity);
    expect(quotaOf({ '/proc/self/cgroup': '0::/\n' })).toBe(Infinity);
    expect(quotaOf({})).toBe(Infinity);
    expect(cpuQuota()).toBeGreaterThan(0);
  });
});
