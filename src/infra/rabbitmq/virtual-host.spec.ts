import { describe, expect, it } from 'vitest';
import { virtualHostOption } from './virtual-host.js';

describe('the virtual host of an AMQP_URL', () => {
  it.each([
    ['amqp://user@host', '-p /'],
    ['amqp://user@host/', '-p /'],
    ['amqp://user@host/%2F', '-p /'],
    ['amqps://user@host:5671/hv?heartbeat=5', '-p hv'],
    ['amqp://user@host/team%2Fone', '-p team/one'],
    ['amqp://user@host/two%20words', "-p 'two words'"],
    ['amqp://user@host/%24%28id%29', "-p '$(id)'"],
    ["amqp://user@host/it's", `-p 'it'\\''s'`],
  ])('of %s is named to its tools by %s', (url, option) => {
    expect(virtualHostOption(url)).toBe(option);
  });
});
