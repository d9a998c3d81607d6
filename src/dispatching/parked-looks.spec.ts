import { beforeEach, describe, expect, it } from 'vitest';
import type { OpenEndpoint } from '../ledger/open-endpoints.js';
import { ParkedLooks } from './parked-looks.js';

const [origin, url] = ['https://receiver.example', 'https://receiver.example/hook'];

function endpoint(address: string, nextProbeAt: number, openedAt = 0): OpenEndpoint {
  const at = new Date(nextProbeAt);
  return {
    address,
    openedAt: new Date(openedAt),
    reason: 'it hangs',
    failures: 3,
    probes: 0,
    nextProbeAt: at,
    leftAloneUntil: at,
    askedUntil: null,
  };
}
const open = (...endpoints: OpenEndpoint[]) => new Map(endpoints.map((each) => [each.address, each]));

describe('looks that wait for the probe of an endpoint', () => {
  let looks: ParkedLooks;

  beforeEach(() => {
    looks = new ParkedLooks();
    looks.add(endpoint(origin, 60_000), 'one');
    looks.add(endpoint(origin, 70_000), 'two');
  });

  it('stay as they were planned while it may be probed then, or later', () => {
    expect(looks.sooner(open(endpoint(origin, 70_000)), 1000)).toEqual([]);
    expect(looks.sooner(open(endpoint(origin, 90_000)), 2000)).toEqual([]);
  });

  it('are due when it is closed, once', () => {
    expect(looks.sooner(open(), 1000)).toEqual([
      { subscriptionId: 'one', nextLookInMs: 0 },
      { subscriptionId: 'two', nextLookInMs: 0 },
    ]);
    expect(looks.sooner(open(), 1000)).toEqual([]);
  });

  it('are due when it was closed and is open again', () => {
    expect(looks.sooner(open(endpoint(origin, 80_000, 500)), 1000)).toHaveLength(2);
  });

  it('come when it may be probed, where that is sooner than it seemed, and are told of once', () => {
    expect(looks.sooner(open(endpoint(origin, 5000)), 1000)).toMatchObject([
      { nextLookInMs: 4000 },
      { nextLookInMs: 4000 },
    ]);
    expect(looks.sooner(open(endpoint(origin, 5000)), 2000)).toEqual([]);
    expect(looks.sooner(open(endpoint(origin, 4000)), 5000)).toMatchObject([{ nextLookInMs: 0 }, { nextLookInMs: 0 }]);
  });

  it('come once where they were planned for two endpoints, for the sooner of both', () => {
    looks.add(endpoint(url, 90_000), 'one');
    const [one] = looks.sooner(open(endpoint(origin, 30_000), endpoint(url, 20_000)), 10_000);
    expect(one).toEqual({ subscriptionId: 'one', nextLookInMs: 10_000 });
  });
});
