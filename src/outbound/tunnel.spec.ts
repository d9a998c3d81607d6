import { EventEmitter } from 'node:events';
import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import type { Connected, ConnectOptions } from './connector.js';
import type { EgressProxy } from './egress-proxy.js';
import { Tunnel } from './tunnel.js';

it('gives up an address that is called without the proxy and accepts nothing, and calls the next one', async () => {
  const tried: string[] = [];
  const connect = ({ hostname }: ConnectOptions, connected: Connected) => {
    tried.push(hostname);
    if (hostname === '10.0.0.2') process.nextTick(() => connected(null, new Socket()));
    return Object.assign(new EventEmitter(), { destroy: (error: Error) => connected(error, null) });
  };
  const socket = await new Promise<Socket | null>((resolve, reject) => {
    const connected: Connected = (...[error, made]) => (error ? reject(error) : resolve(made));
    new Tunnel({ protocol: 'http:', hostname: 'silent.test', port: '80' }, connected, {
      proxy: undefined as unknown as EgressProxy, // is not asked
      lookUp: (_name, _options, found) =>
        found(null, [
          { address: '10.0.0.1', family: 4 },
          { address: '10.0.0.2', family: 4 },
        ]),
      isDirect: () => true,
      connect: connect as ConstructorParameters<typeof Tunnel>[2]['connect'],
      timeoutMs: 10_000,
    });
  });
  expect(socket).toBeInstanceOf(Socket);
  expect(tried).toEqual(['10.0.0.1', '10.0.0.2']);
});
