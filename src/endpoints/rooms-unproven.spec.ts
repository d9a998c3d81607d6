import { beforeEach, describe, expect, it } from 'vitest';
import type { Place } from './room.js';
import { well } from './verdict.js';
import { unanswered, testRooms, type Asked } from '../../test/support/test-rooms.js';

describe('endpoints that are not proven', () => {
  const { start, ask, askMany, isOpen, openOf, end, prove, pass } = testRooms();
  beforeEach(() => start());

  const unknown = (count: number) => Array.from({ length: count }, (_, nr) => ask(`http://unknown-${nr}/`));

  it('have a quarter of the places together', () => {
    prove('http://quick/');
    expect(openOf(unknown(50).flatMap(({ url }) => askMany(url, 7)))).toBe(128 - 50);
    expect(isOpen(ask('http://quick/'))).toBe(true);
  });

  it('have half of the places for one call to each origin: one that is seldom used need not wait for those that hang', () => {
    for (let nr = 0; nr < 16; nr++) askMany(`http://hangs-${nr}/`, 8); // the quarter
    expect(isOpen(ask('http://seldom/'))).toBe(true);
    expect(isOpen(ask('http://seldom/'))).toBe(false);
    expect(openOf(unknown(500))).toBe(256 - 128 - 1);
  });

  it('have one place at least', () => {
    start(1);
    expect(openOf(unknown(3))).toBe(1);
  });

  it('are those that were quick and now hang, a quarter of a second later', async () => {
    const urls = Array.from({ length: 50 }, (_, nr) => `http://was-quick-${nr}/`);
    for (const url of urls) prove(url);
    prove('http://quick/');
    const hanging: Asked[] = [];
    // 400 a second, none of which is answered.
    for (let nr = 0; nr < 4000; nr++) {
      hanging.push(ask(urls[nr % 50]!));
      if (nr % 20 === 0) await pass(50);
      if (nr % 20 === 10) prove('http://quick/'); // it has its place at once
    }
    expect(openOf(hanging)).toBeLessThanOrEqual(128 + 20);
  });

  it.each([1, 8])('are those that hang for the second time, whatever they timed out with (%i calls)', async (calls) => {
    for (const each of askMany('http://a/', calls)) end(each, unanswered, 10_000);
    prove('http://a/');
    const { answer } = ask('http://a/');
    expect((answer as Place).room.isProven).toBe(true);
    await pass(300);
    expect((answer as Place).room.isProven).toBe(false);
  });

  it('are those whose calls take two seconds longer than usual, however slow they are', async () => {
    for (let nr = 0; nr < 20; nr++) end(ask('http://slow/'), well, 5000);
    const { answer } = ask('http://slow/');
    await pass(6900);
    expect((answer as Place).room.isProven).toBe(true);
    await pass(200);
    expect((answer as Place).room.isProven).toBe(false);
  });

  it('leave half of their share to others while calls are overdue', async () => {
    for (let nr = 0; nr < 16; nr++) askMany(`http://hangs-${nr}/`, 4);
    await pass(300);
    for (let nr = 0; nr < 16; nr++) expect(isOpen(ask(`http://hangs-${nr}/`))).toBe(false);
    expect(openOf(unknown(16).flatMap((one) => [one, ...askMany(one.url, 7)]))).toBe(64);
  });

  it('become proven with the first call that goes well', () => {
    const asked = unknown(500);
    for (const each of asked.slice(0, 256)) end(each);
    expect(asked.slice(0, 256).every(({ url }) => isOpen(ask(url)))).toBe(true);
  });
});
