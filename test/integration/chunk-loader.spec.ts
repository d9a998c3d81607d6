import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { ChunkLoader } from '../../src/delivery/chunk-loader.service.js';
import type { HandedOut } from '../../src/ledger/delivery.js';
import { TestLedger, toBroker } from '../support/ledger.js';
import { embedded } from '../support/stacks.js';

Logger.overrideLogger(false);

const running = new AbortController().signal;
const borrower = { origin: 'https://example.org', isProven: true };

describe('loading a chunk', () => {
  let test: TestLedger;
  let loader: ChunkLoader;
  const statements: string[] = [];

  beforeAll(async () => {
    test = await TestLedger.on(embedded);
    const { postgres } = test;
    const watched = Object.create(postgres, {
      query: {
        value: (...given: Parameters<typeof postgres.query>) => {
          statements.push(given[0].name);
          return postgres.query(...given);
        },
      },
    }) as typeof postgres;
    loader = new ChunkLoader(new Catalogue(postgres), watched, test.ledgerClock);
  });
  afterAll(() => test.close());

  const chunkOf = (deliveries: HandedOut[]) => ({
    catalogueVersion: 0,
    queuedAt: test.ledgerClock.now(),
    deliveries,
  });

  it('reads large texts when they are to be sent, together, byte for byte, and each once for its deliveries', async () => {
    const texts = ['é€😀'.repeat(5000), 'x'.repeat(100_000)];
    const accepted = await Promise.all(texts.map((text) => test.accept(2, toBroker, text)));
    const deliveries = accepted.flat().map((delivery) => ({ ...delivery, body: null }));
    statements.length = 0;
    const { deliveries: toSend, bodies } = await loader.load(chunkOf(deliveries), false);
    expect(toSend).toEqual(deliveries);
    expect(statements).toEqual(['read-body-sizes']);
    const borrowed = await Promise.all(deliveries.map((delivery) => bodies.borrow(delivery, borrower, running)));
    expect(borrowed.map((each) => String(each?.text))).toEqual([texts[0], texts[0], texts[1], texts[1]]);
    expect(statements).toEqual(['read-body-sizes', 'read-bodies']);
  });

  it('reads nothing when the texts came with the chunk', async () => {
    const [delivery] = await test.accept();
    statements.length = 0;
    const withText = { ...delivery!, body: Buffer.from('{}') };
    expect((await loader.load(chunkOf([withText]), false)).deliveries).toEqual([withText]);
    expect(statements).toEqual([]);
  });

  it.each([
    ['came back to the queue, however young', 0, true],
    ['is older than a second', -60_000, false],
    ['lies more than a second ahead, by a clock that is behind', 60_000, false],
  ])('leaves out what was handed out again since where its chunk %s', async (_, fromNowMs, isRedelivered) => {
    const accepted = await test.accept(2);
    const [again, still] = accepted.map((each) => ({ ...each, body: Buffer.from('{}') }));
    await test.sql('UPDATE delivery SET generation = generation + 1 WHERE subscription_id = $1', [
      again!.subscriptionId,
    ]);
    const chunk = chunkOf([again!, still!]);
    const loaded = await loader.load({ ...chunk, queuedAt: chunk.queuedAt + fromNowMs }, isRedelivered);
    expect(loaded.deliveries).toEqual([still]);
  });

  it('says of what was released how much of the catalogue was known then', async () => {
    const [one, two] = await test.accept(2);
    const deliveries = [{ ...one!, isReleased: true }, two!].map((each) => ({ ...each, body: Buffer.from('{}') }));
    const version = await test.catalogueVersion();
    const loaded = await loader.load({ ...chunkOf(deliveries), catalogueVersion: version }, false);
    expect(loaded.deliveries.map(({ releasedWith }) => releasedWith)).toEqual([version, undefined]);
  });

  it.each([
    ['is past its retention', 'DELETE FROM notification WHERE id = $1'],
    ['was erased', 'UPDATE notification SET body = NULL WHERE id = $1'],
  ])('finds no text for a notification that %s', async (_, change) => {
    const [delivery] = await test.accept(1, toBroker, 'x'.repeat(10_000));
    await test.sql(change, [delivery!.notificationId]);
    const { deliveries, bodies } = await loader.load(chunkOf([{ ...delivery!, body: null }]), false);
    expect(await bodies.borrow(deliveries[0]!, borrower, running)).toBeUndefined();
  });
});
