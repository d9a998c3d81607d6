import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import { ApplicationChanges } from '../../src/auth/application-changes.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { SecretCipher } from '../../src/secrets/secret-cipher.service.js';
import { SubscriptionChanges } from '../../src/subscriptions/subscription-changes.js';
import { SubscriptionEntity } from '../../src/subscriptions/subscription.entity.js';
import { Api } from '../support/api.js';

const hourMs = 3_600_000;

describe.each([6 * hourMs, -6 * hourMs])('where the clock of the process is off by %i ms', (offMs) => {
  let api: Api;
  beforeAll(async () => {
    api = await Api.start({ ROLES: 'api' });
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offMs });
  });
  afterAll(async () => {
    vi.useRealTimers();
    await api.close();
  });

  const change = <T>(work: (manager: EntityManager, version: number, cipher: SecretCipher) => Promise<T>): Promise<T> =>
    api.app.get(Catalogue).change((manager, version) => work(manager, version, api.app.get(SecretCipher)));

  /** Which of the times are within the hour, by Postgres' clock; null: there is none. */
  const areOfNow = async (table: string, id: string, columns: string[]): Promise<(boolean | null)[]> => {
    const near = columns.map((column) => `abs(extract(epoch FROM ${column} - clock_timestamp())) < 3600 AS ${column}`);
    const [row] = await api.app
      .get(Postgres)
      .dataSource.query<Record<string, boolean | null>[]>(`SELECT ${near.join(', ')} FROM ${table} WHERE id = $1`, [
        id,
      ]);
    return columns.map((column) => row![column]!);
  };

  const input = { callbackUrl: 'https://receiver.example/', auth: 'Bearer x', channels: [] };
  const columns = ['created_at', 'paused_at', 'disabled_at', 'deleted_at'];

  it('a subscription is paused, disabled, deleted and made anew at the time of Postgres', async () => {
    const { id } = await change(async (manager, version, cipher) => {
      const changes = new SubscriptionChanges(manager, version, cipher);
      const { after } = await changes.create('owner', input);
      await changes.pause(after.id);
      await changes.disable(after.id);
      await changes.remove(after.id);
      return after;
    });
    expect(await areOfNow('subscription', id, columns)).toEqual([true, true, true, true]);
    await change(async (manager, version, cipher) => {
      const predecessor = await manager.findOneByOrFail(SubscriptionEntity, { id });
      await new SubscriptionChanges(manager, version, cipher).create('owner', input, { predecessor });
    });
    expect(await areOfNow('subscription', id, columns)).toEqual([true, null, null, null]);
  });

  it('an application is made, given another secret and deleted at the time of Postgres', async () => {
    const given = { label: '', clientId: randomUUID(), scopes: [], isSuperuser: false, secret: randomUUID() };
    const { id } = await change(async (manager, version, cipher) => {
      const changes = new ApplicationChanges(manager, version, cipher);
      const application = await changes.create(given);
      await changes.update(application.id, { secret: randomUUID() });
      await changes.remove(application.id);
      return application;
    });
    const times = ['created_at', 'secret_set_at', 'deleted_at'];
    expect(await areOfNow('application', id, times)).toEqual([true, true, true]);
  });
});
