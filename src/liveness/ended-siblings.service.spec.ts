import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Siblings } from '../supervision/siblings.js';
import { EndedSiblings } from './ended-siblings.service.js';
import type { Heartbeat } from './heartbeat.service.js';

describe('the end of a sibling', () => {
  const warned = vi.fn<(line: unknown) => void>();
  beforeAll(() => Logger.overrideLogger({ log: () => {}, warn: warned, error: () => {} }));
  afterEach(() => warned.mockReset());
  afterAll(() => Logger.overrideLogger(false));

  function watch(noteEnd: Heartbeat['noteEnd']) {
    let end = (_process: string): void => {};
    const announce: Siblings['announce'] = (_process, onEnded) => void (end = onEnded);
    const siblings = { announce } as Siblings;
    const ended = new EndedSiblings(siblings, { processId: 'this one', noteEnd } as unknown as Heartbeat);
    ended.onApplicationBootstrap();
    return { ended, end: (process: string) => end(process) };
  }

  it('is noted in the ledger', () => {
    const noteEnd = vi.fn<Heartbeat['noteEnd']>().mockResolvedValue();
    watch(noteEnd).end('a sibling');
    expect(noteEnd).toHaveBeenCalledExactlyOnceWith('a sibling');
  });

  it('is told to the operator where that fails', async () => {
    watch(() => Promise.reject(new Error('no connection'))).end('a sibling');
    await vi.waitFor(() =>
      expect(warned.mock.calls[0]![0]).toMatchObject({ event: 'heartbeat.end-not-noted', processId: 'a sibling' }),
    );
  });

  it('is nothing to a process that is leaving the database itself', () => {
    const noteEnd = vi.fn<Heartbeat['noteEnd']>().mockRejectedValue(new Error('no pool'));
    const { ended, end } = watch(noteEnd);
    ended.beforeApplicationShutdown();
    end('a sibling');
    expect(noteEnd).not.toHaveBeenCalled();
  });
});
