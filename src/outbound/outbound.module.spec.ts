import { Logger } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import { readSettings } from '../config/settings.js';
import { OutboundModule } from './outbound.module.js';
import { Outbound } from './outbound.service.js';

describe('the start', () => {
  it.each([
    [1, 'on the embedded database', {}],
    [0, 'there with networks that were chosen', { CALLBACK_NETWORKS: 'any' }],
    [0, 'on a database of its own', { DATABASE_URL: 'postgres://db.example/heraut' }],
  ])('says %i times that callbacks may lead to this machine, %s', (times, _where, settings) => {
    const logged = vi.spyOn(Logger.prototype, 'log').mockImplementation(() => {});
    new OutboundModule(new Outbound(readSettings(settings))).onApplicationBootstrap();
    const event = expect.objectContaining({ event: 'callbacks.loopback-allowed' });
    expect(logged.mock.calls).toEqual(Array.from({ length: times }, () => [event]));
    logged.mockRestore();
  });
});
