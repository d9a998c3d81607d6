import { describe, expect, it } from 'vitest';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { fuzzReceivers } from '../../scripts/fuzz/receiver-side.mjs';
import { readSettings } from '../../src/config/settings.js';
import { HttpWebhookClient } from '../../src/delivery/webhook-client.http.js';
import { Outbound } from '../../src/outbound/outbound.service.js';
import { eventually } from '../support/eventually.js';

/** `npm run fuzz` makes more, with another seed. */
const [calls, seed] = [1500, 20_261_122];
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

describe('whatever a receiver answers', () => {
  it('is a response within its time, which leaves neither calls nor memory behind', async () => {
    const client = new HttpWebhookClient(new Outbound(readSettings({ CALLBACK_NETWORKS: 'any' })));
    const { findings, outcomes } = await fuzzReceivers(client, { calls, seed, collectGarbage, timeoutMs: 1500 });
    expect(findings.slice(0, 5)).toEqual([]);
    expect(findings).toHaveLength(0);
    expect([...outcomes.keys()]).toEqual(expect.arrayContaining(['2xx', '3xx', '4xx', '5xx', 'unanswered']));

    // Of calls whose answer is still read, and of their connections: the receiver is gone, so none may last.
    const open = Reflect.get(client, 'calls') as { calls: Set<unknown>; readOnOf: Map<string, number>; readOn: number };
    await eventually(
      () => open.calls.size === 0 && open.readOnOf.size === 0 && open.readOn === 0,
      'no call to be open',
    );
    await client.close();
  });
});
