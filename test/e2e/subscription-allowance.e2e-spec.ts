import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { ChannelDirectory } from '../../src/channels/channel-directory.service.js';
import { Config } from '../../src/config/config.module.js';
import { ConfigurationAtStart } from '../../src/configuration-file/configuration-at-start.service.js';
import { ConfigurationService } from '../../src/configuration-file/configuration.service.js';
import { ConflictProblem, type InvalidParam } from '../../src/infra/http/problem.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import { SecretCipher } from '../../src/secrets/secret-cipher.service.js';
import { newKey } from '../../src/signing/signing-key.js';
import { SubscriptionAllowance } from '../../src/subscriptions/subscription-allowance.service.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import { AdminApi } from '../support/admin-api.js';
import { lastPart } from '../support/last-part.js';
import { protectedReceiver, Receiver } from '../support/receiver.js';

const most = 3;
const mostBytes = 1_048_576;
const mostNames = 4;
const auth = 'Bearer letmein';
const subscriptionsPath = '/admin/v1/subscriptions';

/** Entries that take about so many bytes of memory. */
const kanalenOf = (bytes: number) =>
  Array.from({ length: Math.ceil(bytes / 2700) }, (_, nr) => ({
    naam: 'zaken',
    filters: { zaaktype: `${nr}`.padEnd(950, 'x') },
  }));
const channelsOf = (bytes: number) => kanalenOf(bytes).map(({ naam: channel, filters }) => ({ channel, filters }));

/** Entries that each have an invented name beside that of the channel. */
const inventing = (...names: string[]) =>
  names.map((name) => ({ naam: 'zaken', filters: { zaaktype: '-', [name]: '-' } }));
const named = (entries: ReturnType<typeof inventing>) =>
  entries.map(({ naam: channel, filters }) => ({ channel, filters }));

/** Two signing keys fit beside it. */
const almostAll = kanalenOf(391 * 2700);

describe('an application', () => {
  let admin: AdminApi;
  let receiver: Receiver;
  let clientId: string;
  let token: string;

  beforeAll(async () => {
    const settings = {
      SUBSCRIPTIONS_PER_APPLICATION: String(most),
      SUBSCRIPTION_BYTES_PER_APPLICATION: String(mostBytes),
      FILTER_NAME_SETS_PER_APPLICATION: String(mostNames),
      UNFILTERED_SUBSCRIPTIONS_PER_APPLICATION: '2',
    };
    [admin, receiver] = await Promise.all([AdminApi.start(settings), Receiver.start()]);
    receiver.always(protectedReceiver);
    await admin.api.post('/kanaal', { naam: 'zaken', filters: ['zaaktype'] });
  });
  beforeEach(async () => {
    token = await admin.api.tokenWith('notificaties.consumeren');
    clientId = (JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { client_id: string })
      .client_id;
  });
  afterAll(() => Promise.all([admin.close(), receiver.stop()]));

  const subscribe = (kanalen: object[] = [], by = token) =>
    admin.api.post('/abonnement', { callbackUrl: receiver.url, auth, kanalen }, { token: by });
  const subscribeByAdmin = (channels: object[] = [], headers: Record<string, string> = {}) =>
    admin.post(
      subscriptionsPath,
      {
        ownerClientId: clientId,
        callbackUrl: receiver.url,
        credentials: { authorization: { kind: 'verbatim', auth } },
        channels,
      },
      { headers },
    );
  const own = async () =>
    (await admin.get(subscriptionsPath)).json.subscriptions.filter(
      (one) => (one as { ownerClientId?: string }).ownerClientId === clientId,
    );
  const largestShare = async () => {
    const metrics = (await admin.api.get(`${admin.api.origin}/metrics`)).text;
    return Number(/^heraut_largest_share_ratio (.+)$/m.exec(metrics)?.[1]);
  };
  const tooMany = { status: 409, json: { code: 'too-many-subscriptions' } };
  const tooManyNames = { status: 409, json: { code: 'too-many-filter-names' } };
  const tooManyUnfiltered = { status: 409, json: { code: 'too-many-unfiltered' } };
  const tooLarge = { status: 409, json: { code: 'subscriptions-too-large' } };

  /** Another process, which reads the catalogue into its memory only with its own changes. */
  function sibling(): SubscriptionsService {
    const { app } = admin.api;
    const [postgres, cipher] = [app.get(Postgres), app.get(SecretCipher)];
    const catalogue = new Catalogue(postgres);
    const directory = new SubscriptionDirectory(catalogue, postgres, cipher);
    const allowance = new SubscriptionAllowance(app.get(Config), catalogue, directory, app.get(ChannelDirectory));
    return new SubscriptionsService(catalogue, directory, postgres, new OperationalEvents(), cipher, allowance);
  }

  it('has as many subscriptions as the setting says, whoever makes them, and another one when one is gone', async () => {
    const { json } = await subscribe();
    expect((await subscribeByAdmin()).status).toBe(201);
    expect((await subscribe()).status).toBe(201);
    expect(await subscribe()).toMatchObject(tooMany);
    expect(await subscribeByAdmin()).toMatchObject(tooMany);
    expect((await subscribe([], await admin.api.tokenWith('notificaties.consumeren'))).status).toBe(201);
    expect((await admin.api.delete(json.url, { token })).status).toBe(204);
    expect((await subscribe()).status).toBe(201);
    expect(await own()).toHaveLength(most);
  });

  it('is answered as before when it repeats a request that made its last subscription', async () => {
    await subscribe();
    await subscribe();
    const headers = { 'idempotency-key': randomUUID() };
    const { status, json } = await subscribeByAdmin([], headers);
    expect(status).toBe(201);
    expect(await subscribeByAdmin([], headers)).toMatchObject({ status: 201, json: { id: json.id } });
    expect(await subscribeByAdmin([], { 'idempotency-key': randomUUID() })).toMatchObject(tooMany);
  });

  it('does not get more by asking several processes at once', async () => {
    const asked = Array.from({ length: 4 }, () => sibling()).flatMap((process) =>
      [1, 2].map(() => process.create(clientId, { callbackUrl: receiver.url, auth, channels: [] })),
    );
    const settled = await Promise.allSettled(asked);
    const refused = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
    expect(refused).toHaveLength(8 - most);
    expect(refused.every((reason) => reason instanceof ConflictProblem)).toBe(true);
    expect(await own()).toHaveLength(most);
  });

  it('may take so much memory, by new subscriptions and by changes of those that there are', async () => {
    // Some ten thousand bytes are left beside two of them.
    const half = kanalenOf(194 * 2700);
    const { json: first } = await subscribe(half);
    const { json: second } = await subscribe(half);
    expect(await subscribe(kanalenOf(mostBytes / 2))).toMatchObject(tooLarge);
    const larger = kanalenOf(mostBytes / 2 + 150_000);
    const input = { callbackUrl: receiver.url, auth };
    expect(await admin.api.put(first.url, { ...input, kanalen: larger }, { token })).toMatchObject(tooLarge);
    expect(await admin.api.patch(first.url, { kanalen: larger }, { token })).toMatchObject(tooLarge);
    const path = `${subscriptionsPath}/${lastPart(second.url)}`;
    expect(await admin.patch(path, { channels: channelsOf(mostBytes / 2 + 150_000) })).toMatchObject(tooLarge);
    const headers = Object.fromEntries(Array.from({ length: 2 }, (_, nr) => [`x-${nr}`, 'y'.repeat(8000)]));
    expect(await admin.patch(`${path}/credentials`, { headers })).toMatchObject(tooLarge);
    expect((await admin.api.get(first.url)).json.kanalen).toHaveLength(half.length);
    // As it is, smaller, and then the other one larger.
    expect((await admin.api.put(first.url, { ...input, kanalen: half }, { token })).status).toBe(200);
    expect((await admin.api.patch(first.url, { kanalen: [] }, { token })).status).toBe(200);
    expect((await admin.api.patch(second.url, { kanalen: larger }, { token })).status).toBe(200);
  });

  it('has its signing keys counted, those that were rotated as long as they sign', async () => {
    const { json } = await subscribe(almostAll);
    const path = `${subscriptionsPath}/${lastPart(json.url)}/signing-keys`;
    const add = () => admin.post(path, {});
    const first = await add();
    expect(first.status).toBe(201);
    expect((await add()).status).toBe(201);
    expect(await add()).toMatchObject(tooLarge);
    const rotate = (graceSeconds: number) => admin.post(`${path}/${first.json.id}/rotate`, { graceSeconds });
    expect(await rotate(60)).toMatchObject(tooLarge);
    expect((await rotate(0)).status).toBe(201);
    await admin.api.delete(json.url, { token });
  });

  it('may have so many sets of names in its filters on a channel, since every publication there looks at each', async () => {
    const { json } = await subscribe(inventing('a', 'b', 'c'));
    expect((await subscribe(inventing('a', 'c', 'd'))).status).toBe(201);
    expect(await subscribe(inventing('e'))).toMatchObject(tooManyNames);
    expect(await subscribeByAdmin(named(inventing('e')))).toMatchObject(tooManyNames);
    const larger = inventing('a', 'b', 'c', 'e');
    const input = { callbackUrl: receiver.url, auth };
    expect(await admin.api.put(json.url, { ...input, kanalen: larger }, { token })).toMatchObject(tooManyNames);
    expect(await admin.api.patch(json.url, { kanalen: larger }, { token })).toMatchObject(tooManyNames);
    const path = `${subscriptionsPath}/${lastPart(json.url)}`;
    expect(await admin.patch(path, { channels: named(larger) })).toMatchObject(tooManyNames);
    // Other applications have shares of their own, and what comes in the place of another fits.
    const other = await admin.api.tokenWith('notificaties.consumeren');
    expect((await subscribe(inventing('e'), other)).status).toBe(201);
    expect((await admin.api.patch(json.url, { kanalen: inventing('a', 'e') }, { token })).status).toBe(200);
  });

  it('may have so many subscriptions that get everything of a channel, since every publication makes a delivery for each', async () => {
    const everything = [{ naam: 'zaken', filters: {} }];
    const ofNoFilter = [{ naam: 'zaken', filters: { zaaktype: '*', invented: '-' } }];
    const filtered = [{ naam: 'zaken', filters: { zaaktype: '-' } }];
    const { json } = await subscribe([...everything, ...filtered]);
    const second = await subscribe(ofNoFilter);
    expect(second.status).toBe(201);
    for (const kanalen of [everything, ofNoFilter]) {
      expect(await subscribe(kanalen)).toMatchObject(tooManyUnfiltered);
      const channels = kanalen.map(({ naam: channel, filters }) => ({ channel, filters }));
      expect(await subscribeByAdmin(channels)).toMatchObject(tooManyUnfiltered);
    }
    const third = await subscribe(filtered);
    expect(third.status).toBe(201);
    expect(await admin.api.patch(third.json.url, { kanalen: everything }, { token })).toMatchObject(tooManyUnfiltered);
    // As it is, and in the place of another; other applications have shares of their own.
    expect((await admin.api.patch(json.url, { kanalen: ofNoFilter }, { token })).status).toBe(200);
    expect((await admin.api.patch(second.json.url, { kanalen: filtered }, { token })).status).toBe(200);
    expect((await admin.api.patch(third.json.url, { kanalen: everything }, { token })).status).toBe(200);
    const other = await admin.api.tokenWith('notificaties.consumeren');
    expect((await subscribe(everything, other)).status).toBe(201);
  });

  it('has its largest share shown as no more than all of it, while nothing is above a limit', async () => {
    expect((await subscribe(inventing('a', 'b', 'c', 'd'))).status).toBe(201);
    expect((await subscribe([{ naam: 'zaken', filters: {} }])).status).toBe(201);
    expect(await largestShare()).toBe(1);
  });

  it('goes on with the sets of names that it had before there was a limit, and may have fewer', async () => {
    const { json } = await subscribe();
    const id = lastPart(json.url);
    await admin.api.app.get(Catalogue).change(async (manager, version) => {
      await manager.query('UPDATE subscription SET channels = $1, version = $2 WHERE id = $3', [
        JSON.stringify(named(inventing('a', 'b', 'c', 'd', 'e', 'f'))),
        version,
        id,
      ]);
    });
    expect(await subscribe(inventing('g'))).toMatchObject(tooManyNames);
    expect((await subscribe(inventing('a'))).status).toBe(201);
    expect((await admin.post(`${subscriptionsPath}/${id}/pause`)).status).toBe(200);
    expect(await largestShare()).toBeGreaterThanOrEqual(1.5);
    const { status } = await admin.api.patch(json.url, { kanalen: inventing('a', 'b', 'c', 'd', 'h') }, { token });
    expect(status).toBe(200);
    await admin.api.delete(json.url, { token });
  });

  it('that has more than the settings say goes on, and may have less', async () => {
    const { app } = admin.api;
    const made = await subscribe();
    const id = lastPart(made.json.url);
    // As it was accepted when there was no limit.
    await app.get(Catalogue).change(async (manager, version) => {
      await manager.query('UPDATE subscription SET channels = $1, version = $2 WHERE id = $3', [
        JSON.stringify(channelsOf(mostBytes * 2)),
        version,
        id,
      ]);
    });
    expect(await subscribe()).toMatchObject(tooLarge);
    expect((await admin.post(`${subscriptionsPath}/${id}/pause`)).status).toBe(200);
    const { length } = (await admin.api.get(made.json.url)).json.kanalen;
    const fewer = kanalenOf(mostBytes * 1.9);
    expect(length).toBeGreaterThan(fewer.length);
    const { status } = await admin.api.patch(made.json.url, { kanalen: fewer.slice(0, 499) }, { token });
    expect(status).toBe(200);
    expect((await admin.api.get(made.json.url)).json.kanalen).toHaveLength(499);
    expect(await largestShare()).toBeGreaterThan(1.2);
    await admin.api.delete(made.json.url, { token });
  });

  describe('in a configuration', () => {
    const entry = (channels: object[], id: string = randomUUID()) => ({
      id,
      ownerClientId: clientId,
      callbackUrl: receiver.url,
      authorization: { kind: 'verbatim', auth },
      channels,
    });
    const refusedAs = (code: string) => ({ extra: { invalidParams: [{ name: 'subscriptions', code }] } });

    it('is refused more than the settings say, when it is planned and when it is applied, and all the rest with it', async () => {
      const service = admin.api.app.get(ConfigurationService);
      const four = { subscriptions: [1, 2, 3, 4].map(() => entry([])) };
      await expect(service.plan(four, false)).rejects.toMatchObject(refusedAs('too-many-subscriptions'));
      await expect(service.apply(four, false)).rejects.toMatchObject(refusedAs('too-many-subscriptions'));
      const signingKeys = [1, 2, 3].map(() => ({ scheme: 'v1', secret: newKey('v1').secret }));
      const channels = almostAll.map(({ naam, filters }) => ({ channel: naam, filters }));
      const signed = (keys: object[]) => ({ subscriptions: [{ ...entry(channels), signingKeys: keys }] });
      await expect(service.plan(signed(signingKeys), false)).rejects.toMatchObject(
        refusedAs('subscriptions-too-large'),
      );
      await service.plan(signed(signingKeys.slice(1)), false);
      const large = { subscriptions: [1, 2].map(() => entry(channelsOf(mostBytes * 0.6))) };
      await expect(service.apply(large, false)).rejects.toMatchObject(refusedAs('subscriptions-too-large'));
      const ofManyNames = { subscriptions: [entry(named(inventing('a', 'b', 'c', 'd', 'e')))] };
      await expect(service.plan(ofManyNames, false)).rejects.toMatchObject(refusedAs('too-many-filter-names'));
      await expect(service.apply(ofManyNames, false)).rejects.toMatchObject(refusedAs('too-many-filter-names'));
      const everything = { subscriptions: [1, 2, 3].map(() => entry([{ channel: 'zaken' }])) };
      await expect(service.plan(everything, false)).rejects.toMatchObject(refusedAs('too-many-unfiltered'));
      await expect(service.apply(everything, false)).rejects.toMatchObject(refusedAs('too-many-unfiltered'));
      expect(await own()).toEqual([]);
    });

    it('has its subscriptions judged by the filters that their channels have in it', async () => {
      const service = admin.api.app.get(ConfigurationService);
      const [channel, other] = [randomUUID(), randomUUID()];
      const ofKind = (name: string) => entry([{ channel: name, filters: { soort: '-' } }]);
      const three = { channels: [{ name: channel }], subscriptions: [1, 2, 3].map(() => ofKind(channel)) };
      await expect(service.plan(three, false)).rejects.toMatchObject(refusedAs('too-many-unfiltered'));
      await service.plan({ ...three, channels: [{ name: channel, filters: ['soort'] }] }, false);
      await service.apply({ channels: [{ name: other }], subscriptions: [ofKind(other), ofKind(other)] }, false);
      const third = { subscriptions: [ofKind(other)] };
      await expect(service.plan(third, false)).rejects.toMatchObject(refusedAs('too-many-unfiltered'));
      await service.apply({ ...third, channels: [{ name: other, filters: ['soort'] }] }, false);
      expect(await own()).toHaveLength(3);
    });

    it('has its share by what is there afterwards: others are given away, or made smaller, in the same file', async () => {
      const service = admin.api.app.get(ConfigurationService);
      const [one, two] = [entry(channelsOf(mostBytes * 0.6)), entry([])];
      await service.apply({ subscriptions: [one, two] }, false);
      const swapped = [entry(channelsOf(mostBytes * 0.1), one.id), entry(channelsOf(mostBytes * 0.6), two.id)];
      await service.apply({ subscriptions: swapped }, false);
      await service.apply({ subscriptions: swapped }, false);
      const other = await admin.api.tokenWith('notificaties.consumeren');
      const { client_id: heir } = JSON.parse(Buffer.from(other.split('.')[1]!, 'base64url').toString()) as {
        client_id: string;
      };
      const subscriptions = [{ ...swapped[1]!, ownerClientId: heir }, entry([]), entry([])];
      await service.apply({ subscriptions }, false);
      expect(await own()).toHaveLength(most);
      expect(await subscribe()).toMatchObject(tooMany);
    });

    it('has nothing kept at a start, in place of channels that are not there yet, that does not fit', async () => {
      const service = admin.api.app.get(ConfigurationService);
      const [channel, late] = [randomUUID(), { channel: randomUUID() }];
      const [first, second, third] = [entry([{ channel }]), entry([{ channel }]), entry([])];
      const other = JSON.parse(
        Buffer.from((await admin.api.tokenWith('notificaties.consumeren')).split('.')[1]!, 'base64url').toString(),
      ) as { client_id: string };
      const others = { ...entry([{ channel }]), ownerClientId: other.client_id };
      await service.apply({ channels: [{ name: channel }], subscriptions: [first, second, third, others] }, false);
      const swapped = [
        { id: first.id, channels: [late] },
        { id: third.id, channels: [{ channel }] },
        { id: others.id, channels: [late] },
      ];
      const postponed: InvalidParam[] = [];
      await service.apply({ subscriptions: swapped }, false, { postponed });
      const channelsOfAll = [first, second, third, others].map(async ({ id }) => {
        const { channels } = await admin.api.app.get(SubscriptionsService).get(id);
        return channels.length;
      });
      expect(await Promise.all(channelsOfAll)).toEqual([0, 1, 1, 1]);
      expect(postponed.map(({ name, reason }) => [name, reason.includes('and keeps')])).toEqual([
        ['subscriptions.0.channels.0.channel', false],
        ['subscriptions.2.channels.0.channel', true],
      ]);
    });

    it('ends a start that would have more, with the line of the file', async () => {
      const directory = mkdtempSync(join(tmpdir(), 'heraut-allowance-'));
      const path = join(directory, 'heraut.yaml');
      writeFileSync(path, `subscriptions: ${JSON.stringify([1, 2, 3, 4].map(() => entry([])))}`);
      const start = new ConfigurationAtStart(
        { settings: { CONFIG_FILE: path } } as ConstructorParameters<typeof ConfigurationAtStart>[0],
        admin.api.app.get(ConfigurationService),
      );
      await expect(start.onModuleInit()).rejects.toThrow(
        `${path}:1:16 subscriptions: The application ${clientId} would have 4 subscriptions; one may have 3 (SUBSCRIPTIONS_PER_APPLICATION).`,
      );
      rmSync(directory, { recursive: true });
    });
  });
});
