import { expect, it } from 'vitest';
import { readSettings } from '../config/settings.js';
import type { Catalogue } from '../catalogue/catalogue.service.js';
import type { ChannelDirectory } from '../channels/channel-directory.service.js';
import { ValidationProblem } from '../infra/http/problem.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import { PublicationReader } from './publication-reader.service.js';

const now = Date.parse('2025-06-01T12:00:00Z');
const raw = {
  kanaal: 'zaken',
  hoofdObject: 'https://example.org/zaken/1',
  resource: 'zaak',
  resourceUrl: 'https://example.org/zaken/1',
  actie: 'create',
  aanmaakdatum: '2025-06-01T12:00:00Z',
};

/** A reader that is behind until it compares clocks, and knows no channel until it reads the catalogue again. */
function setUp({ behindMs = 0, comparesTo = now, knowsChannel = true }) {
  const world = { now: now - behindMs, knowsChannel, comparisons: 0 };
  const channel = { name: 'zaken', filters: [], canonicalFilters: new Set() };
  const channels = { find: () => (world.knowsChannel ? channel : undefined) } as unknown as ChannelDirectory;
  const catalogue = { refresh: async () => void (world.knowsChannel = true) } as unknown as Catalogue;
  const ledgerClock = {
    now: () => world.now,
    compare: async () => {
      world.comparisons++;
      world.now = comparesTo;
    },
  } as unknown as LedgerClock;
  return { world, reader: new PublicationReader(channels, catalogue, ledgerClock, { settings: readSettings({}) }) };
}

it('takes a notification of this moment after its machine was suspended', async () => {
  const { reader } = setUp({ behindMs: 3000 });
  expect(await reader.read(raw)).toMatchObject({ createdAt: now });
});

it('takes one whose channel was made just now besides', async () => {
  const { reader } = setUp({ behindMs: 3000, knowsChannel: false });
  expect(await reader.read(raw)).toMatchObject({ createdAt: now });
});

it('refuses what lies ahead of Postgres’ clock as well', async () => {
  const { reader } = setUp({ behindMs: 3000, comparesTo: now - 1000 });
  const refused = await reader.read(raw).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ValidationProblem);
  expect(refused).toMatchObject({ extra: { invalidParams: [{ code: 'future_not_allowed' }] } });
});

it('compares no clocks for what is in order, or is refused for something else as well', async () => {
  const { reader, world } = setUp({});
  await reader.read(raw);
  const refused = await reader
    .read({ ...raw, actie: '', aanmaakdatum: '2025-06-01T12:00:01Z' })
    .catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ValidationProblem);
  expect(world.comparisons).toBe(0);
});
