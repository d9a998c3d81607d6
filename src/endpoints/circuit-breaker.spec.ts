import { beforeEach, describe, expect, it } from 'vitest';
import { CircuitBreakers } from './circuit-breaker.js';

describe('circuit breakers', () => {
  let nowMs: number;
  let breakers: CircuitBreakers;

  beforeEach(() => {
    nowMs = 0;
    breakers = new CircuitBreakers(3, () => nowMs);
  });

  const fail = (...deliveries: string[]) => deliveries.map((delivery) => breakers.failed('http://a', delivery));

  it('open when that many deliveries fail one after the other', () => {
    expect(fail('1', '2', '3')).toEqual([undefined, undefined, 3]);
  });

  it('begin anew after a success', () => {
    fail('1', '2');
    breakers.succeeded('http://a');
    expect(fail('3', '4')).toEqual([undefined, undefined]);
    expect(fail('5')).toEqual([3]);
  });

  it('count for each endpoint by itself', () => {
    fail('1', '2');
    expect(breakers.failed('http://b', '3')).toBeUndefined();
    breakers.succeeded('http://b');
    expect(fail('3')).toEqual([3]);
  });

  it('never open for one delivery that is alone, however soon it is repeated', () => {
    expect(fail(...Array.from({ length: 100 }, () => '1')).every((opens) => opens === undefined)).toBe(true);
  });

  it('tell how many calls failed, those that were repeated included', () => {
    expect(fail('1', '1', '2', '2', '3')).toEqual([undefined, undefined, undefined, undefined, 5]);
  });

  it('do not open for failures that are spread over more than half a minute', () => {
    for (let delivery = 0; delivery < 20; delivery++) {
      expect(fail(String(delivery))).toEqual([undefined]);
      nowMs += 15_000;
    }
  });

  it('begin anew where an origin is closed, and know which of its URLs has hung alone until that is answered', () => {
    const url = 'http://a/hook';
    const failBoth = (...deliveries: string[]) =>
      deliveries.map((delivery) => [breakers.failed('http://a', delivery), breakers.failed(url, delivery)]);
    failBoth('1', '2', '3');
    breakers.failed('http://a/once', '4');
    expect(breakers.hangsAlone(url)).toBe(false); // its host has answered nothing
    breakers.closed('http://a');
    expect(breakers.hangsAlone(url)).toBe(true);
    expect(breakers.hangsAlone('http://a/once')).toBe(false);
    expect(failBoth('5', '6')).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ]);
    breakers.succeeded(url);
    expect(breakers.hangsAlone(url)).toBe(false);
  });

  it('forget addresses whose failures are long ago, when there are many', () => {
    for (let nr = 0; nr < 5000; nr++) {
      breakers.failed(`http://${nr}`, '1');
      nowMs += 100;
    }
    expect((Reflect.get(breakers, 'series') as Map<string, unknown>).size).toBeLessThanOrEqual(1000);
  });
});
