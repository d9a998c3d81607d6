import { describe, expect, it } from 'vitest';
import { v7 as uuidv7 } from 'uuid';
import { decodeChunk, encodeChunk, UnreadableChunk } from './chunk-format.js';
import type { Chunk } from './chunk.js';
import { deliveryWithText as delivery } from '../../test/support/new-delivery.js';

const { subscriptionId } = delivery();

describe('a chunk as a message', () => {
  const text = '{"kanaal":"zaken","π":"€ 😀\\n\\u0000"}';

  it('reads back as it was, with its texts', () => {
    const [first, second] = [uuidv7(), uuidv7()];
    const chunk: Chunk = {
      catalogueVersion: 7,
      queuedAt: 1_763_625_600_000,
      deliveries: [
        {
          ...delivery(text, first),
          generation: 3,
          attempts: 2,
          failures: 1,
          replays: 4,
          expiresAt: 1_763_625_700_000.5,
        },
        { ...delivery(text, first), subscriptionId: uuidv7(), isReleased: true },
        { ...delivery(null, second), isReleased: true, isProbe: true },
        delivery('', uuidv7()),
        delivery('{"again":true}', first),
      ],
    };
    expect(decodeChunk(encodeChunk(chunk))).toEqual(chunk);
  });

  it('carries a text that several deliveries share once, and they share it again', () => {
    const id = uuidv7();
    const deliveries = Array.from({ length: 64 }, () => delivery('x'.repeat(10_000), id));
    const message = encodeChunk({ catalogueVersion: 1, queuedAt: 0, deliveries });
    expect(message.length).toBeLessThan(10_000 + 64 * 100);
    expect(new Set(decodeChunk(message).deliveries.map(({ body }) => body)).size).toBe(1);
  });

  it('carries a trace context where there is one, once for a notification, and is as before where there is none', () => {
    const traceParent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const [plain, traced] = [uuidv7(), uuidv7()];
    const deliveries = [
      delivery(text, plain),
      { ...delivery(text, traced), traceParent },
      { ...delivery(text, traced), subscriptionId: uuidv7(), traceParent },
    ];
    const message = encodeChunk({ catalogueVersion: 1, queuedAt: 0, deliveries });
    expect(decodeChunk(message).deliveries).toEqual(deliveries);
    expect(message.toString('latin1').split(traceParent)).toHaveLength(2);
    const without = encodeChunk({ catalogueVersion: 1, queuedAt: 0, deliveries: deliveries.slice(0, 1) });
    expect(without.toString('latin1')).toContain(`[["${plain}",${Buffer.byteLength(text)}]]`);
  });

  it('does not hold on to the message', () => {
    const message = encodeChunk({ catalogueVersion: 1, queuedAt: 0, deliveries: [delivery(text)] });
    const { body } = decodeChunk(message).deliveries[0]!;
    message.fill(0);
    expect(String(body)).toBe(text);
  });

  describe('is refused', () => {
    const id = uuidv7();
    const valid = [1, 0, [[id, 2]], [[0, subscriptionId, 1, 0, 0, 0, null, 0]]];
    const message = (head: unknown, body = '{}', version = 3) => {
      const bytes = Buffer.from(typeof head === 'string' ? head : JSON.stringify(head));
      const start = Buffer.from([version, 0, 0, 0, 0]);
      start.writeUInt32BE(bytes.length, 1);
      return Buffer.concat([start, bytes, Buffer.from(body)]);
    };

    it('only when it is not one of ours', () => {
      expect(decodeChunk(message(valid)).deliveries).toHaveLength(1);
    });

    it.each<[string, Buffer]>([
      ['nothing', Buffer.alloc(0)],
      ['a text', Buffer.from('hello, this is no chunk')],
      ['bytes', Buffer.from([3, 0xff, 0xff, 0xff, 0xff, 1])],
      ['another version of the format', message(valid, '{}', 1)],
      ['a head that is no JSON', message('no')],
      ['a head that is no list', message('null')],
      ['a head that is too long', message([...valid, 'more'])],
      ['a negative version of the catalogue', message([-1, ...valid.slice(1)])],
      ['a delivery of no notification', message([1, 0, [], [[0, subscriptionId, 1, 0, 0, 0, null, 0]]], '')],
      [
        'a delivery of a notification before the first',
        message([1, 0, [[id, 2]], [[-1, subscriptionId, 1, 0, 0, 0, null, 0]]]),
      ],
      ['a delivery with a mark that is none', message([1, 0, [[id, 2]], [[0, subscriptionId, 1, 0, 0, 0, null, 3]]])],
      ['a delivery that is too short', message([1, 0, [[id, 2]], [[0, subscriptionId, 1]]])],
      ...[2, 3, 4, 5].map((column): [string, Buffer] => [
        `a number that the ledger cannot have, in column ${column}`,
        message([1, 0, [[id, 2]], [[0, subscriptionId, 1, 0, 0, 0, null, 0].with(column, 2 ** 31)]]),
      ]),
      ['an id that is none', message([1, 0, [['n', 2]], [[0, subscriptionId, 1, 0, 0, 0, null, 0]]])],
      ['a text as its own length', message([1, 0, [[id, '2']], [[0, subscriptionId, 1, 0, 0, 0, null, 0]]])],
      ['too few bytes', message(valid, '{')],
      ['too many bytes', message(valid, '{}}')],
    ])('for %s', (_what, bytes) => {
      expect(() => decodeChunk(bytes)).toThrow(UnreadableChunk);
    });
  });
});
