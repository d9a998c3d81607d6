import { Logger } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ThrottledProblem } from '../infra/http/problem.js';
import { SignInFailed } from './sign-in-failed.js';
import { SignInController } from './sign-in.controller.js';
import type { SignIn } from './sign-in.service.js';

describe('sign-ins that fail', () => {
  let lines: object[];
  let failure: Error;
  let controller: SignInController;

  beforeEach(() => {
    vi.useFakeTimers();
    lines = [];
    const ignore = () => {};
    Logger.overrideLogger({ log: ignore, error: ignore, debug: ignore, warn: (line: object) => lines.push(line) });
    controller = new SignInController({ withTicket: () => Promise.reject(failure) } as unknown as SignIn);
  });
  afterEach(() => {
    Logger.overrideLogger(false);
    vi.useRealTimers();
  });

  async function fail(times: number, error: Error, ip = '192.0.2.1'): Promise<string[]> {
    failure = error;
    const redirect = vi.fn<(to: string) => Promise<void>>();
    const reply = { header: () => {}, redirect } as unknown as FastifyReply;
    for (let nr = 0; nr < times; nr++) await controller.enter({}, { ip } as FastifyRequest, reply);
    return redirect.mock.calls.map(([to]) => to);
  }

  it('are logged once of each reason in a minute, with an address and how many there were', async () => {
    const pages = await fail(1000, new SignInFailed('ticket-refused'));
    expect(new Set(pages)).toEqual(new Set(['./sign-in?error=ticket-refused']));
    expect(pages).toHaveLength(1000);
    await fail(1000, new ThrottledProblem(60));
    const cause = new Error('no answer');
    await fail(1, new SignInFailed('provider-unavailable', { cause }));
    const event = 'sign-in.failed';
    expect(lines).toEqual([
      { event, reason: 'ticket-refused', address: '192.0.2.1', refused: 1, error: undefined },
      { event, reason: 'throttled', address: '192.0.2.1', refused: 1, error: undefined },
      { event, reason: 'provider-unavailable', address: '192.0.2.1', refused: 1, error: cause },
    ]);
    vi.advanceTimersByTime(60_000);
    await fail(2, new SignInFailed('ticket-refused'), '192.0.2.2');
    expect(lines.slice(3)).toMatchObject([{ reason: 'ticket-refused', address: '192.0.2.2', refused: 1000 }]);
  });
});
