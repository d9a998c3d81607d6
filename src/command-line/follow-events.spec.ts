import { expect, it } from 'vitest';
import type { AdminClient } from './admin-client.js';
import { followEvents } from './follow-events.js';

it('a connection that is lost while nothing happened goes on where the server had said that it was', async () => {
  const streams = ['retry: 1\n\n: alive\nid: 41\n\n: alive\nid: 42\n\n', 'id: 43\ndata: x\n\n'];
  const asked: Record<string, string>[] = [];
  const client = {
    open: (_: string, { headers }: { headers: Record<string, string> }) => {
      asked.push(headers);
      return Promise.resolve(new Response(streams.shift()));
    },
  } as unknown as AdminClient;
  const stopping = new AbortController();
  const following = { query: {}, lastEventId: undefined, onLost: () => {}, onAgain: () => {} };
  for await (const { data } of followEvents(client, following, stopping.signal)) {
    expect(data).toBe('x');
    stopping.abort();
  }
  expect(asked.map((headers) => headers['last-event-id'])).toEqual([undefined, '42']);
});
