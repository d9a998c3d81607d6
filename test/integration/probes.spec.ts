import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import type { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { credentialsOf, noParts, toStore, type CredentialParts } from '../../src/credentials/credentials.js';
import type { Releaser } from '../../src/dispatching/releaser.service.js';
import { UnusedEndpoints } from '../../src/dispatching/unused-endpoints.service.js';
import { longestOpenGauge } from '../../src/endpoints/endpoints.metrics.js';
import type { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import { addressOf } from '../../src/endpoints/origin.js';
import { closeEndpoints } from '../../src/ledger/open-endpoints.js';
import type { OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import { InProcessDeliveryQueue } from '../../src/queue/delivery-queue.in-process.js';
import type { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { makeCertificate } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { HeldScene, origin, running, url } from '../support/held-scene.js';
import type { TestLedger } from '../support/ledger.js';
import { embedded, real } from '../support/stacks.js';

Logger.overrideLogger(false);

const hourMs = 3_600_000;
const callback = { callbackUrl: url, credentials: {} };

describe.each([embedded, real])('held deliveries, and probes of endpoints, on the $name stack', (stack) => {
  const scene = new HeldScene(stack);
  const { enqueued, newReleaser, newSubscription, accept, lookIsDue, look, probeIsDue } = scene;
  let test: TestLedger;
  let catalogue: Catalogue;
  let directory: SubscriptionDirectory;
  let events: OperationalEvents;
  let openEndpoints: OpenEndpoints;
  let releaser: Releaser;
  let subscription: string;

  beforeAll(async () => {
    ({ test, catalogue, directory, events, openEndpoints, releaser } = await scene.open());
  });
  beforeEach(async () => {
    subscription = await scene.clear();
  });
  afterEach(() => vi.restoreAllMocks());
  afterAll(() => scene.close());

  it('may be probed again soon where the queue refused the probe', async () => {
    await accept(1, 'endpoint-parked');
    await openEndpoints.open(url, 'HTTP 503', 5);
    await probeIsDue();
    await lookIsDue();
    const full = new InProcessDeliveryQueue(test.heartbeat.processId, 100_000);
    vi.spyOn(full, 'publish').mockResolvedValue('refused');
    expect(await newReleaser(full).releaseHeld(running)).toBe(1);
    expect(await test.sql('SELECT probes, probing_until FROM endpoint')).toEqual([{ probes: 1, probing_until: null }]);
  });

  it('of a parked endpoint go one at a time, as probes, whoever looks; and with its window when it is closed', async () => {
    await accept(11, 'endpoint-parked');
    await openEndpoints.open(origin, 'no answer', 5);
    expect(await look()).toBe(0); // not due yet
    const due = () =>
      test.sql("UPDATE endpoint SET next_probe_at = now() - interval '10 s'").then(() => openEndpoints.refresh());
    await due();
    await lookIsDue();
    const both = await Promise.all([releaser.releaseHeld(running), newReleaser().releaseHeld(running)]);
    expect(both.toSorted()).toEqual([0, 1]);
    expect(await look()).toBe(0);
    await due();
    expect(await look()).toBe(0); // the first is under way
    // A worker refuses one that follows too soon, and the next would be kept away until the lease of that one ends.
    await test.sql("UPDATE endpoint SET next_probe_at = now() - interval '10 s'");
    await openEndpoints.endProbe(origin, 60_000);
    await openEndpoints.refresh();
    expect(await look()).toBe(0);
    await due();
    expect(await look()).toBe(1);
    // Its worker was killed.
    await test.sql("UPDATE endpoint SET probing_until = now() - interval '1 s'");
    await due();
    expect(await look()).toBe(1);
    await openEndpoints.close(origin);
    expect(await look()).toBe(8);
  });

  it('of a parked endpoint are its probe only where they do not expire on the way: the oldest of these, or the newest', async () => {
    const all = await accept(5, 'endpoint-parked');
    const [first, second, third, , last] = all.map(({ notificationId }) => notificationId);
    await openEndpoints.open(url, 'HTTP 503', 5);
    const expiring = (seconds: number, ...ids: (string | undefined)[]) =>
      test.sql(`UPDATE delivery SET expires_at = now() + $1 * interval '1 s' WHERE notification_id = ANY ($2)`, [
        seconds,
        ids,
      ]);
    const probe = async () => {
      await probeIsDue();
      await look();
      return enqueued.splice(0).map(({ notificationId, isProbe }) => [notificationId, isProbe]);
    };
    await expiring(-1, first);
    await expiring(hourMs, second);
    expect(await probe()).toEqual([[second, true]]);
    await expiring(14, third, last);
    await expiring(-1, all[3]!.notificationId);
    expect(await probe()).toEqual([[last, true]]);
    expect(await probe()).toEqual([[third, true]]);
    // A claim would keep others away: none is made where all have expired.
    const probes = await test.sql('SELECT probes FROM endpoint');
    expect(await probe()).toEqual([]);
    expect(await test.sql('SELECT probes FROM endpoint')).toEqual(probes);
    const [next] = await accept(1, 'endpoint-parked');
    expect(await probe()).toEqual([[next!.notificationId, true]]);
  });

  describe('of a parked endpoint', () => {
    /** Milliseconds, of the only row. */
    const lookAt = async () =>
      (await test.sql<{ at: Date }>('SELECT look_at AS at FROM held_subscription'))[0]!.at.getTime();
    const close = (closed: string) => closeEndpoints((...asked) => test.postgres.query(...asked), [closed], true);
    const probeIn = async (of: string, ms: number) => {
      await openEndpoints.open(of, 'no answer', 5);
      await test.sql(`UPDATE endpoint SET next_probe_at = now() + $2 * interval '1 ms' WHERE address = $1`, [of, ms]);
      await openEndpoints.refresh();
    };

    it('are looked at again when that may be probed, and after ten seconds at the latest', async () => {
      await accept(2, 'endpoint-parked');
      for (const [probeMs, lookMs] of [
        [8000, 8000],
        [100_000, 10_000],
      ] as const) {
        await probeIn(origin, probeMs);
        const before = await test.now();
        expect(await look()).toBe(0);
        expect((await lookAt()) - before).toBeGreaterThan(lookMs - 5000);
        expect((await lookAt()) - (await test.now())).toBeLessThanOrEqual(lookMs);
      }
    });

    it('are released at once when it is closed, whoever closes it, also where it is opened again', async () => {
      await accept(3, 'endpoint-parked');
      await probeIn(origin, 60_000);
      expect(await look()).toBe(0);
      expect(await releaser.releaseHeld(running)).toBe(0);
      await close(origin);
      await probeIn(origin, -1000);
      expect(await releaser.releaseHeld(running)).toBe(1); // a probe
      await close(origin);
      expect(await releaser.releaseHeld(running)).toBe(2);
    });

    it('wait for both where their URL and its origin are parked', async () => {
      await accept(3, 'endpoint-parked');
      const own = addressOf(callback);
      await probeIn(origin, 60_000);
      await probeIn(own, 50_000);
      expect(await look()).toBe(0);
      await close(own);
      expect(await releaser.releaseHeld(running)).toBe(0);
      await probeIn(own, 50_000);
      await close(origin);
      expect(await releaser.releaseHeld(running)).toBe(0);
      await close(own);
      expect(await releaser.releaseHeld(running)).toBe(3);
    });

    it('are looked at as soon as it may be probed again, where the probe that was under way has found nothing', async () => {
      await accept(3, 'endpoint-parked');
      await probeIn(origin, -1000);
      expect(await openEndpoints.claimProbe(openEndpoints.of(callback)!, subscription)).toBe(true);
      await openEndpoints.refresh();
      expect(await look()).toBe(0);
      await openEndpoints.endProbe(origin, 0, true);
      await eventually(async () => (await releaser.releaseHeld(running)) === 1);
      expect(enqueued).toMatchObject([{ isProbe: true }]);
    });
  });

  it('of a subscription with a rate are no probe of a parked endpoint before that allows one, and those of others are', async () => {
    const slow = await newSubscription({ ratePerSecond: 0.001 });
    await accept(5, 'rate', slow);
    await openEndpoints.open(origin, 'no answer', 5);
    const probe = async () => {
      await probeIsDue();
      return look();
    };
    expect([await probe(), await probe()]).toEqual([1, 0]);
    await accept(2, 'endpoint-parked');
    expect([await probe(), await probe()]).toEqual([1, 1]);
    await test.sql("UPDATE held_subscription SET credited_at = now() - interval '1000 s' WHERE subscription_id = $1", [
      slow,
    ]);
    expect([await probe(), await probe()]).toEqual([1, 0]);
    const probed = enqueued.map(({ subscriptionId, isProbe }) => [subscriptionId, isProbe]);
    expect(probed).toEqual([slow, subscription, subscription, slow].map((id) => [id, true]));
    expect(await test.sql('SELECT probes FROM endpoint')).toEqual([{ probes: 4 }]);
  });

  it('probe a parked origin in turns: the calls for one subscription may tell nothing of it', async () => {
    const claims = [];
    for (const path of ['one', 'two']) {
      const subscriptionId = await newSubscription({ url: `${url}/${path}` });
      await accept(1, 'endpoint-parked', subscriptionId);
      claims.push({ address: origin, subscriptionId, isRelease: true });
    }
    await openEndpoints.open(claims[0]!.address, 'no answer', 5);
    const met: string[] = [];
    for (let times = 0; times < 40; times++) {
      await probeIsDue();
      const claimed = await openEndpoints.claimProbes(claims);
      expect(claimed).toHaveLength(1);
      met.push(claimed[0]!.subscriptionId);
    }
    expect(new Set(met).size).toBe(2);
  });

  it('probe a parked origin again soon where its probe was refused for the TLS identity of its subscription, by another one', async () => {
    const own = `${url}/one`;
    const [refused, other] = [await newSubscription({ url: own }), await newSubscription({ url: `${url}/two` })];
    for (const to of [refused, other]) await accept(2, 'endpoint-parked', to);
    for (const each of [origin, own]) await openEndpoints.open(each, 'no answer', 5);
    // Both have been parked for long, and the probe of the URL is due as well.
    await test.sql("UPDATE endpoint SET opened_at = now() - interval '1 day', next_probe_at = now() - interval '1 s'");
    await test.sql("UPDATE endpoint SET next_probe_at = now() - interval '2 s' WHERE address = $1", [own]);
    await openEndpoints.refresh();
    const [claimed] = await openEndpoints.claimProbes([{ address: origin, subscriptionId: refused, isRelease: true }]);
    expect(claimed).toBeDefined();
    const nextProbes = async () => {
      await openEndpoints.refresh();
      return [origin, own].map((each) => openEndpoints.all.get(each)!.nextProbeAt.getTime()) as [number, number];
    };
    const [afterPause] = await nextProbes();
    await openEndpoints.open(own, 'CERT_HAS_EXPIRED', 1);
    await openEndpoints.endProbe(origin, 500, true);
    const [ofOrigin, ofUrl] = await nextProbes();
    expect(ofOrigin).toBeLessThan(afterPause);
    // The later one of the two decides which of them a subscription probes.
    expect(ofOrigin).toBeLessThan(ofUrl);
    await test.sql("UPDATE endpoint SET next_probe_at = now() - interval '1 s' WHERE address = $1", [origin]);
    await test.sql("UPDATE endpoint SET next_probe_at = now() + interval '1 minute' WHERE address = $1", [own]);
    await openEndpoints.refresh();
    expect(await look()).toBe(1);
    expect(enqueued.map(({ subscriptionId, isProbe }) => [subscriptionId, isProbe])).toEqual([[other, true]]);
  });

  it('keep the time that was asked for where a probe found nothing', async () => {
    await openEndpoints.open(url, 'HTTP 503', 1, 3_600_000);
    await test.sql("UPDATE endpoint SET probing_until = now() + interval '15 s'");
    await openEndpoints.endProbe(url, 500, true);
    const [row] = await test.sql('SELECT probing_until, next_probe_at = asked_until AS is_kept FROM endpoint');
    expect(row).toEqual({ probing_until: null, is_kept: true });
  });

  it('leave no probe claimed where none could be released for it', async () => {
    await accept(1, 'endpoint-parked');
    await openEndpoints.open(url, 'no answer', 5);
    await probeIsDue();
    const query = test.postgres.query.bind(test.postgres);
    vi.spyOn(test.postgres, 'query').mockImplementation((statement, values) =>
      statement.name === 'release' ? Promise.reject(new Error('it took too long')) : query(statement, values),
    );
    try {
      await expect(look()).rejects.toThrow('it took too long');
    } finally {
      vi.restoreAllMocks();
    }
    expect(await test.sql('SELECT probes, probing_until FROM endpoint')).toEqual([{ probes: 1, probing_until: null }]);
  });

  it('are of endpoints that are opened together, each once, also where two calls open the same', async () => {
    const opened: string[] = [];
    events.onReport((event) => event.event === 'endpoint.opened' && opened.push(`${event.address} ${event.reason}`));
    const addresses = Array.from({ length: 300 }, (_, nr) => `http://host-${nr}.example`);
    await Promise.all([...addresses, addresses[0]!].map((address) => openEndpoints.open(address, 'no answer', 5)));
    const sorted = addresses.toSorted();
    expect(opened.toSorted()).toEqual(sorted.map((address) => `${address} no answer`).toSorted());
    expect(
      openEndpoints
        .list()
        .map(({ address }) => address)
        .toSorted(),
    ).toEqual(sorted);
    await test.sql("UPDATE endpoint SET next_probe_at = now() - interval '1 s'");
    const claims = addresses.map((address) => ({ address, subscriptionId: subscription, isRelease: false }));
    expect(await openEndpoints.claimProbes(claims)).toHaveLength(300);
    expect(await openEndpoints.claimProbes(claims)).toEqual([]);
    await Promise.all(addresses.slice(1).map((address) => openEndpoints.endProbe(address, 0)));
    expect(await test.sql('SELECT address FROM endpoint WHERE probing_until IS NOT NULL')).toEqual([
      { address: addresses[0] },
    ]);
  });

  it('ask in one statement for the probes of all endpoints that are found out at the same time, and each learns of its own', async () => {
    const addresses = Array.from({ length: 100 }, (_, nr) => `http://host-${nr}.example`);
    await Promise.all(addresses.map((address) => openEndpoints.open(address, 'no answer', 5)));
    await test.sql("UPDATE endpoint SET next_probe_at = now() - interval '1 s'");
    await test.sql("UPDATE endpoint SET probing_until = now() + interval '1 minute' WHERE address LIKE '%9.example'");
    const query = vi.spyOn(test.postgres, 'query');
    const met = await Promise.all(
      openEndpoints.list().map(async (open) => `${open.address} ${await openEndpoints.claimProbe(open, subscription)}`),
    );
    const expected = addresses.map((address) => `${address} ${!address.endsWith('9.example')}`);
    expect(met.toSorted()).toEqual(expected.toSorted());
    expect(query.mock.calls.filter(([{ name }]) => name === 'claim-probes')).toHaveLength(1);
  });

  it('are released by endpoints that recover at the same time, which are closed in one statement but for one that asked for more time', async () => {
    const addresses = Array.from({ length: 100 }, (_, nr) => `http://host-${nr}.example`);
    await Promise.all(addresses.map((address) => openEndpoints.open(address, 'no answer', 5)));
    await openEndpoints.open('http://host-7.example', 'HTTP 503', 5, 120_000);
    const query = vi.spyOn(test.postgres, 'query');
    const report = vi.spyOn(events, 'report');
    const others = [...addresses, 'http://never-open.example'];
    const closed = await Promise.all(others.map((address) => openEndpoints.close(address)));
    expect(others.filter((_, nr) => !closed[nr])).toEqual(['http://host-7.example', 'http://never-open.example']);
    expect(query.mock.calls.filter(([{ name }]) => name === 'close-endpoints')).toHaveLength(1);
    expect(openEndpoints.list().map(({ address }) => address)).toEqual(['http://host-7.example']);
    expect(report).toHaveBeenCalledTimes(99);
    expect(report).toHaveBeenCalledWith(
      expect.objectContaining({ event: 'endpoint.closed', address: addresses[0], by: 'probe' }),
    );
  });

  it('wait for as long as their receiver asks for while it is probed, also where that is seconds, and the probe is answered well', async () => {
    await openEndpoints.open(url, 'HTTP 503', 5);
    await probeIsDue();
    expect(await openEndpoints.claimProbe(openEndpoints.list()[0]!, subscription)).toBe(true);
    // The answer to a call that had begun before.
    await openEndpoints.open(url, 'HTTP 429', 1, 55_000);
    expect(await openEndpoints.close(url)).toBe(false);
    await openEndpoints.endProbe(url, 0);
    await openEndpoints.refresh();
    expect(await openEndpoints.claimProbe(openEndpoints.list()[0]!, subscription)).toBe(false);
    await test.sql("UPDATE endpoint SET asked_until = now() - interval '1 s'");
    expect(await openEndpoints.close(url)).toBe(true);
  });

  it('do not wait for as long as their receiver has asked for where an operator says that it is well', async () => {
    await openEndpoints.open(url, 'HTTP 429', 1, hourMs);
    expect(await openEndpoints.reset([url], () => Promise.resolve())).toBe(true);
    expect(openEndpoints.list()).toEqual([]);
  });

  it('leave no circuit breaker open of an endpoint that no subscription leads to: nothing would probe it', async () => {
    const elsewhere = 'http://elsewhere.example';
    await openEndpoints.open(origin, 'no answer', 5);
    await openEndpoints.open(url, 'HTTP 503', 5);
    await openEndpoints.open(elsewhere, 'no answer', 5);
    const unused = new UnusedEndpoints(openEndpoints, directory, catalogue);
    const open = () => openEndpoints.list().map(({ address }) => address);
    await unused.close();
    expect(open()).toEqual([origin, url]);
    // A disabled subscription is not called either.
    await test.sql('UPDATE catalogue SET version = version + 1');
    await test.sql('UPDATE subscription SET disabled_at = now(), version = (SELECT version FROM catalogue)');
    await unused.close();
    expect(open()).toEqual([]);
  });

  it('leave no circuit breaker open for a URL with a TLS identity that no subscription has any more', async () => {
    const tls = { authority: makeCertificate('authority').certificate };
    const of = (parts: Partial<CredentialParts>) => ({
      callbackUrl: url,
      credentials: credentialsOf({ ...noParts, ...parts }),
    });
    await test.sql('UPDATE catalogue SET version = version + 1');
    await test.sql('UPDATE subscription SET credentials = $1, version = (SELECT version FROM catalogue)', [
      toStore({ ...noParts, tls }),
    ]);
    const [present, before] = [addressOf(of({ tls })), addressOf(of({ tls: { authority: 'before' } }))];
    for (const address of [present, before, url]) await openEndpoints.open(address, 'CERT_HAS_EXPIRED', 5);
    expect(openEndpoints.of(of({ tls }))?.address).toBe(present);
    await new UnusedEndpoints(openEndpoints, directory, catalogue).close();
    expect(openEndpoints.list().map(({ address }) => address)).toEqual([present]);
  });

  it('give way to no delivery that is due; one that is due while none is held is a probe, unless the receiver asked to be left alone', async () => {
    const claim = async () => {
      await test.sql('UPDATE endpoint SET probing_until = NULL'); // the former has ended
      await openEndpoints.refresh();
      return openEndpoints.claimProbe(openEndpoints.of(callback)!, subscription);
    };
    await openEndpoints.open(url, 'HTTP 503', 5);
    await test.sql("UPDATE endpoint SET next_probe_at = now() + interval '1 minute'");
    expect(await claim()).toBe(true);
    expect(await openEndpoints.claimProbe(openEndpoints.of(callback)!, subscription)).toBe(false); // it is under way
    await openEndpoints.open(url, 'HTTP 503', 5, 60_000);
    expect(await claim()).toBe(false);
    await test.sql("UPDATE endpoint SET asked_until = now() - interval '1 s'");
    expect(await claim()).toBe(true);
    await accept(1, 'endpoint-parked');
    expect(await claim()).toBe(false);
    await test.sql('UPDATE endpoint SET next_probe_at = now()');
    expect(await claim()).toBe(true);
  });

  it('of a URL that asked to be left alone for long are not probed sooner because its origin is in trouble too', async () => {
    await accept(1, 'endpoint-parked');
    await openEndpoints.open(url, 'HTTP 503', 1, 3_600_000);
    await openEndpoints.open(origin, 'no answer', 5, 0);
    expect(openEndpoints.of(callback)?.address).toBe(url);
    expect(await look()).toBe(0);
    await test.sql("UPDATE endpoint SET next_probe_at = now() - interval '10 s' WHERE address = $1", [url]);
    await openEndpoints.refresh();
    expect(await look()).toBe(1);
  });

  it('tell how long the one that was opened first has been open', async () => {
    const longest = async () => (await longestOpenGauge.get()).values[0]!.value;
    await openEndpoints.refresh();
    expect(await longest()).toBe(0);
    for (const address of ['http://first.example', url]) await openEndpoints.open(address, 'HTTP 503', 5);
    await test.sql("UPDATE endpoint SET opened_at = now() - interval '2 h' WHERE address = $1", [
      'http://first.example',
    ]);
    await openEndpoints.refresh();
    expect(await longest()).toBeGreaterThanOrEqual(7200);
    expect(await longest()).toBeLessThan(3 * 3600);
    await openEndpoints.close('http://first.example');
    expect(await longest()).toBeLessThan(3600);
  });

  it('probe an endpoint less often the longer it is open', async () => {
    await accept(1, 'endpoint-parked');
    await openEndpoints.open(url, 'HTTP 503', 5);
    for (const [openSeconds, pause] of [
      [0, 1],
      [10, 1],
      [60, 3],
      [200, 10],
      [1200, 60],
      [86_400, 60],
    ] as const) {
      await test.sql(`UPDATE endpoint SET next_probe_at = now(), opened_at = now() - $1 * interval '1 s'`, [
        openSeconds,
      ]);
      await openEndpoints.refresh();
      const [before] = await test.sql<{ now: Date }>('SELECT now()');
      expect(await openEndpoints.claimProbe(openEndpoints.of(callback)!, subscription)).toBe(true);
      await openEndpoints.endProbe(url, 0);
      const [after] = await test.sql<{ now: Date; next: Date }>('SELECT now(), next_probe_at AS next FROM endpoint');
      // It was claimed between the two, on a busy machine long after the one, and long before the other.
      const secondsFrom = ({ now }: { now: Date }) => (after!.next.getTime() - now.getTime()) / 1000;
      expect(secondsFrom(before!)).toBeGreaterThanOrEqual(pause);
      expect(secondsFrom(after!)).toBeLessThanOrEqual(pause + 0.5);
    }
  });
});
