import { describe, expect, it } from 'vitest';
import { firstAttemptSpanId, partsOf, readTraceParent, writeTraceParent } from './trace-parent.js';

const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
const sampled = `00-${traceId}-${spanId}-01`;

describe('a traceparent', () => {
  it('is read as it is', () => {
    expect(readTraceParent(sampled)).toBe(sampled);
    expect(partsOf(sampled)).toEqual({ traceId, spanId, isSampled: true });
    expect(partsOf(`00-${traceId}-${spanId}-02`).isSampled).toBe(false);
    expect(writeTraceParent({ traceId, spanId, isSampled: true })).toBe(sampled);
  });

  it('of a later version is read as far as it is known', () => {
    expect(readTraceParent(`cc-${traceId}-${spanId}-01-what-the-future-will-be-like`)).toBe(sampled);
    expect(readTraceParent(`cc-${traceId}-${spanId}-01`)).toBe(sampled);
  });

  it.each([
    undefined,
    [sampled, sampled],
    '',
    'x',
    sampled.toUpperCase(),
    ` ${sampled}`,
    `${sampled}\n`,
    `ff-${traceId}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId}-${spanId}-01-more`,
    `cc-${traceId}-${spanId}-01more`,
    `00-${traceId.slice(1)}-${spanId}-01`,
    `00-${traceId}-${spanId}`,
    `${sampled}, ${sampled}`,
  ])('is none if it is not as W3C has it: %j', (header) => {
    expect(readTraceParent(header)).toBeUndefined();
  });
});

describe('the id of the span of a first attempt', () => {
  const notification = '019a0b1c-2d3e-7f40-8a1b-2c3d4e5f6071';
  it('is the same wherever it is asked for, and another for each delivery', () => {
    const one = firstAttemptSpanId(notification, 'c0ffee00-0000-4000-8000-000000000001');
    expect(one).toMatch(/^[0-9a-f]{16}$/);
    expect(firstAttemptSpanId(notification, 'c0ffee00-0000-4000-8000-000000000001')).toBe(one);
    expect(firstAttemptSpanId(notification, 'c0ffee00-0000-4000-8000-000000000003')).not.toBe(one);
    expect(firstAttemptSpanId(notification.replace('8a1b', '8a1c'), 'c0ffee00-0000-4000-8000-000000000001')).not.toBe(
      one,
    );
  });
});
