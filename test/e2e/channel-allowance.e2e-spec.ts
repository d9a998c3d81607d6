import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { ChannelAllowance } from '../../src/channels/channel-allowance.service.js';
import { ChannelDirectory } from '../../src/channels/channel-directory.service.js';
import { readShare, shareOf } from '../../src/channels/channel-share.js';
import { ChannelsService } from '../../src/channels/channels.service.js';
import { Config } from '../../src/config/config.module.js';
import { ConfigurationAtStart } from '../../src/configuration-file/configuration-at-start.service.js';
import { ConfigurationService } from '../../src/configuration-file/configuration.service.js';
import { Postgres, type Query } from '../../src/infra/postgres/postgres.js';
import { AdminApi } from '../support/admin-api.js';

const most = 3;
const mostBytes = 1_048_576;
const channelsPath = '/admin/v1/channels';

/** Names that take about 40 kB of memory. */
const filters = Array.from({ length: 100 }, (_, nr) => `${nr}`.padEnd(100, 'x'));

describe('all channels together', () => {
  let admin: AdminApi;
  let token: string;

  beforeAll(async () => {
    admin = await AdminApi.start({ CHANNELS_MAX: String(most), CHANNEL_BYTES_MAX: String(mostBytes) });
    token = await admin.api.tokenWith('notificaties.publiceren');
  });
  beforeEach(async () => {
    for (const { id } of (await admin.get(channelsPath)).json.channels as { id: string }[])
      expect((await admin.delete(`${channelsPath}/${id}`)).status).toBe(204);
  });
  afterAll(() => admin.close());

  const create = (naam: string = randomUUID(), more: object = {}) =>
    admin.api.post('/kanaal', { naam, ...more }, { token });
  const createByAdmin = (more: object = {}) => admin.post(channelsPath, { name: randomUUID(), ...more });
  const count = async () => (await admin.get(channelsPath)).json.channels.length;
  const tooMany = { status: 409, json: { code: 'too-many-channels' } };
  const tooLarge = { status: 409, json: { code: 'channels-too-large' } };

  /** As they were accepted when there was no limit. */
  const fill = (names: string[], each: string[]) =>
    admin.api.app.get(Catalogue).change(async (manager, version) => {
      await manager.query(
        `INSERT INTO channel (id, name, documentation_link, filters, version)
         SELECT gen_random_uuid(), name, '', $2::text[], $3 FROM unnest($1::text[]) AS name`,
        [names, each, version],
      );
    });

  it('are as many as the setting says, whoever makes them, and another one when one is gone', async () => {
    const naam = randomUUID();
    expect((await create(naam)).status).toBe(201);
    expect((await createByAdmin()).status).toBe(201);
    const third = await createByAdmin();
    expect(third.status).toBe(201);
    expect(await create()).toMatchObject(tooMany);
    expect(await createByAdmin()).toMatchObject(tooMany);
    // Publishers make theirs at each of their starts.
    expect(await create(naam)).toMatchObject({ status: 400, json: { invalidParams: [{ code: 'unique' }] } });
    expect((await admin.delete(`${channelsPath}/${third.json.id}`)).status).toBe(204);
    expect((await create()).status).toBe(201);
    expect(await count()).toBe(most);
  });

  it('are not more where several processes are asked at once', async () => {
    const { app } = admin.api;
    const processes = [1, 2, 3, 4].map(() => {
      const catalogue = new Catalogue(app.get(Postgres));
      const directory = new ChannelDirectory(catalogue, app.get(Postgres));
      return new ChannelsService(catalogue, directory, new ChannelAllowance(app.get(Config)));
    });
    const made = processes.flatMap((process) =>
      [1, 2].map(() => process.create({ name: randomUUID(), documentationLink: '', filters: [] }, 'naam')),
    );
    const settled = await Promise.allSettled(made);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(most);
    expect(await count()).toBe(most);
  });

  it('may take so much memory, by new ones and by changes of those that there are', async () => {
    const { json } = await create();
    const [first] = (await admin.get(channelsPath)).json.channels as { id: string; name: string }[];
    const path = `${channelsPath}/${first!.id}`;
    await fill(['large'], Array.from({ length: 2000 }, (_, nr) => `${nr}`.padEnd(160, 'x')).concat(filters));
    expect(await create(randomUUID(), { filters })).toMatchObject({ status: 201 });
    await fill(
      ['larger'],
      Array.from({ length: 700 }, (_, nr) => `${nr}`.padEnd(100, 'x')),
    );
    expect(await admin.patch(path, { filters })).toMatchObject(tooLarge);
    expect(await admin.api.patch(json.url, { filters }, { token })).toMatchObject(tooLarge);
    expect(await admin.api.put(json.url, { naam: first!.name, filters }, { token })).toMatchObject(tooLarge);
    expect((await admin.api.get(json.url)).json).toMatchObject({ filters: [] });
  });

  it('go on where they are more than the settings say, and may become less', async () => {
    await fill(
      Array.from({ length: 40 }, () => randomUUID()),
      filters,
    );
    expect(await create()).toMatchObject(tooMany);
    const [first] = (await admin.get(channelsPath)).json.channels as { id: string }[];
    const path = `${channelsPath}/${first!.id}`;
    expect((await admin.patch(path, { maxAgeSeconds: 60 })).status).toBe(200);
    expect((await admin.patch(path, { filters: filters.slice(1) })).status).toBe(200);
    expect(await admin.patch(path, { filters })).toMatchObject(tooLarge);
  });

  it('are reckoned alike in the database and in a plan', async () => {
    const described = [
      { name: 'a', documentationLink: '', filters: [] },
      { name: 'é', documentationLink: 'https://example.com/ā', filters: ['kind', '😀', 'ā'.repeat(100)] },
    ];
    for (const { name: naam, documentationLink: documentatieLink, filters: names } of described)
      expect((await create(naam, { documentatieLink, filters: names })).status).toBe(201);
    const postgres = admin.api.app.get(Postgres);
    const query: Query = (statement, values) => postgres.query(statement, values);
    expect(await readShare(query)).toEqual(shareOf(described));
  });

  describe('in a configuration', () => {
    const named = (length: number, more: object = {}) =>
      Array.from({ length }, (_, nr) => ({ name: `configured-${nr}`, ...more }));
    const refusedAs = (code: string) => ({ extra: { invalidParams: [{ name: 'channels', code }] } });

    it('are refused where there would be more, with what there is beside it, when it is planned and when it is applied', async () => {
      await create();
      const service = admin.api.app.get(ConfigurationService);
      await expect(service.plan({ channels: named(most) }, false)).rejects.toMatchObject(
        refusedAs('too-many-channels'),
      );
      await expect(service.apply({ channels: named(most) }, false)).rejects.toMatchObject(
        refusedAs('too-many-channels'),
      );
      await service.apply({ channels: named(most - 1) }, false);
      await fill(
        Array.from({ length: 40 }, () => randomUUID()),
        filters,
      );
      await expect(service.plan({ channels: named(1, { filters }) }, false)).rejects.toMatchObject(
        refusedAs('channels-too-large'),
      );
      await service.apply({ channels: named(1, { maxAgeSeconds: 60 }) }, false);
    });

    it('end a start that would have more, with the line of the file', async () => {
      const directory = mkdtempSync(join(tmpdir(), 'heraut-channels-'));
      const path = join(directory, 'heraut.yaml');
      writeFileSync(path, `channels: ${JSON.stringify(named(most + 1))}`);
      const start = new ConfigurationAtStart(
        { settings: { CONFIG_FILE: path } } as ConstructorParameters<typeof ConfigurationAtStart>[0],
        admin.api.app.get(ConfigurationService),
      );
      await expect(start.onModuleInit()).rejects.toThrow(
        `${path}:1:11 channels: There would be 4 channels; there may be 3 (CHANNELS_MAX).`,
      );
      rmSync(directory, { recursive: true });
    });
  });
});
