import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { ApplicationDirectory } from '../../src/auth/application-directory.service.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { ChannelDirectory } from '../../src/channels/channel-directory.service.js';
import { RetryPolicies } from '../../src/retry-policy/retry-policies.service.js';
import { defaultRetryPolicy } from '../../src/retry-policy/retry-schedule.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { TestLedger } from '../support/ledger.js';
import { plainCipher } from '../support/secrets.js';
import { embedded } from '../support/stacks.js';

Logger.overrideLogger(false);

const everything = [
  'subscription_retry_policy',
  'retry_policy',
  'subscription',
  'application',
  'channel',
  'catalogue',
] as const;

describe('a process whose database has gone back', () => {
  let test: TestLedger;
  let catalogue: Catalogue;
  let applications: ApplicationDirectory;
  let channels: ChannelDirectory;
  let policies: RetryPolicies;
  let subscriptions: SubscriptionDirectory;

  beforeAll(async () => {
    test = await TestLedger.on(embedded);
    await makeMonthsAhead(test.postgres);
    catalogue = new Catalogue(test.postgres);
    applications = new ApplicationDirectory(catalogue, test.postgres, plainCipher, test.config);
    channels = new ChannelDirectory(catalogue, test.postgres);
    policies = new RetryPolicies(test.postgres, catalogue);
    subscriptions = new SubscriptionDirectory(catalogue, test.postgres, plainCipher);
  });
  afterAll(() => test.close());

  /** Everything that is in the catalogue now; @returns the function that restores it */
  async function backUp(): Promise<() => Promise<void>> {
    for (const table of everything) await test.sql(`CREATE TABLE backup_of_${table} AS TABLE ${table}`);
    return async () => {
      for (const table of everything) await test.sql(`DELETE FROM ${table}`);
      for (const table of everything.toReversed())
        await test.sql(`INSERT INTO ${table} SELECT * FROM backup_of_${table}`);
    };
  }

  const change = (text: string, ...values: unknown[]) =>
    catalogue.change((manager, version) => manager.query(text, [version, ...values]));
  const addChannel = (name: string) =>
    change(
      `INSERT INTO channel (id, name, documentation_link, filters, version) VALUES ($2, $3, '', '{}', $1)`,
      randomUUID(),
      name,
    );
  const addApplication = (clientId: string) =>
    change(
      `INSERT INTO application (id, client_id, label, secret, scopes, is_superuser, version)
       VALUES ($2, $3, '', 'secret', '{}', false, $1)`,
      randomUUID(),
      clientId,
    );
  async function subscribe(): Promise<string> {
    const id = randomUUID();
    await change(
      `INSERT INTO subscription (id, owner_client_id, callback_url, auth, channels, version)
       VALUES ($2, 'owner', 'http://receiver.example/', '', '[{"channel": "cases", "filters": {}}]', $1)`,
      id,
    );
    return id;
  }

  it('has everything that is there in memory and nothing that is not', async () => {
    await addChannel('cases');
    await addApplication('owner');
    const [disabled, overridden, deleted] = [await subscribe(), await subscribe(), await subscribe()];
    await policies.replaceOverride(overridden, { maxRetries: 3 });
    const version = catalogue.version;
    const restore = await backUp();

    await addChannel('lost');
    await addApplication('lost');
    const lost = await subscribe();
    await change('UPDATE subscription SET disabled_at = now(), version = $1 WHERE id = $2', disabled);
    await change('UPDATE subscription SET deleted_at = now(), version = $1 WHERE id = $2', deleted);
    await change(`UPDATE application SET alert_email = 'owner@example.org', version = $1 WHERE client_id = 'owner'`);
    await policies.replaceOverride(overridden, null);
    await policies.replaceOverride(disabled, { maxRetries: 5 });
    await policies.replaceGeneral({ ...defaultRetryPolicy, maxRetries: 2 });
    expect(subscriptions.match('cases', new Map()).toSorted()).toEqual([overridden, lost].toSorted());

    await restore();
    await catalogue.refresh();
    expect(catalogue.version).toBe(version);
    const there = [disabled, overridden, deleted].toSorted();
    expect(subscriptions.match('cases', new Map()).toSorted()).toEqual(there);
    expect([...subscriptions.all()].map(({ id }) => id).toSorted()).toEqual(there);
    expect(subscriptions.find(disabled)).toMatchObject({ disabledAt: null });
    expect(channels.list().map(({ name }) => name)).toEqual(['cases']);
    expect([applications.find('owner')?.alertEmail, applications.find('lost')]).toEqual([null, undefined]);
    expect(policies.general).toEqual(defaultRetryPolicy);
    expect([policies.override(overridden), policies.override(disabled)]).toEqual([{ maxRetries: 3 }, undefined]);
  });
});
