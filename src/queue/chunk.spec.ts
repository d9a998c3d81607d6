import { describe, expect, it } from 'vitest';
import { readFileSync } from 'node:fs';
import { v7 as uuidv7 } from 'uuid';
import type { HandedOut } from '../ledger/delivery.js';
import { encodeChunk } from './chunk-format.js';
import { cutIntoChunks, type Chunk } from './chunk.js';
import { deliveryWithText as delivery } from '../../test/support/new-delivery.js';

const many = (count: number, make: () => HandedOut) => Array.from({ length: count }, make);
const sizes = (chunks: Chunk[]) => chunks.map(({ deliveries }) => deliveries.length);

describe('cutting deliveries into chunks', () => {
  it('makes no chunk without deliveries', () => {
    expect(cutIntoChunks([], 1, 0)).toEqual([]);
  });

  it('puts up to 64 deliveries into one', () => {
    expect(sizes(cutIntoChunks(many(64, delivery), 1, 0))).toEqual([64]);
    expect(sizes(cutIntoChunks(many(130, delivery), 1, 0))).toEqual([64, 64, 2]);
  });

  it('puts up to 256 KB of text into one', () => {
    const text = 'x'.repeat(8192);
    expect(
      sizes(
        cutIntoChunks(
          many(40, () => delivery(text)),
          1,
          0,
        ),
      ),
    ).toEqual([32, 8]);
  });

  it('counts a text that deliveries share once in every chunk', () => {
    const [text, id] = ['x'.repeat(200_000), uuidv7()];
    expect(
      sizes(
        cutIntoChunks(
          many(100, () => delivery(text, id)),
          1,
          0,
        ),
      ),
    ).toEqual([64, 36]);
    const other = delivery('x'.repeat(100_000));
    expect(sizes(cutIntoChunks([...many(63, () => delivery(text, id)), other], 1, 0))).toEqual([63, 1]);
  });

  it('sends a text that is larger than a chunk by itself', () => {
    const large = delivery('x'.repeat(300_000));
    expect(sizes(cutIntoChunks([delivery(), large, delivery()], 1, 0))).toEqual([1, 1, 1]);
  });

  it('keeps the order, and gives every chunk the version and time', () => {
    const deliveries = many(70, delivery);
    const chunks = cutIntoChunks(deliveries, 12, 34);
    expect(chunks.flatMap((chunk) => chunk.deliveries)).toEqual(deliveries);
    expect(chunks.map(({ catalogueVersion, queuedAt }) => [catalogueVersion, queuedAt])).toEqual([
      [12, 34],
      [12, 34],
    ]);
  });

  it('never makes a message larger than RabbitMQ is set to accept', () => {
    const limit = Number(/^max_message_size = (\d+)$/m.exec(readFileSync('rabbitmq.conf', 'utf8'))?.[1]);
    // The longest travelling texts: of characters with one byte, and of characters with many bytes.
    for (const text of ['"'.repeat(8192), '€'.repeat(2730), '😀'.repeat(2048)]) {
      const chunks = cutIntoChunks(
        many(64, () => ({ ...delivery(text), generation: 2 ** 31 - 1 })),
        2 ** 53 - 1,
        Date.now(),
      );
      for (const chunk of chunks) expect(encodeChunk(chunk).length).toBeLessThan(limit);
    }
  });
});
