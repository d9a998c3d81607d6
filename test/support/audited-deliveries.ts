import { expect } from 'vitest';
import { createHash, randomUUID } from 'node:crypto';
import type { AuditScene, Call, Calls } from './audit-scene.js';

const asked = { subscriptions: [randomUUID()] };

/** Calls that change how it stands with deliveries: of one, of many, of an endpoint, and of what is erased. */
export function auditedDeliveries(scene: AuditScene): Calls {
  const { sql, subscription, delivery } = scene;
  return {
    endpoint_reset: async () => {
      const address = `https://${randomUUID()}.example.org`;
      await sql("INSERT INTO endpoint (address, reason, failures, next_probe_at) VALUES ($1, 'HTTP 503', 5, now())", [
        address,
      ]);
      return {
        method: 'POST',
        path: '/admin/v1/endpoints/reset',
        body: { address },
        action: 'endpoint.reset',
        subject: `endpoint/${address}`,
        before: { openedAt: expect.any(String), reason: 'HTTP 503', failures: 5 },
        after: null,
      };
    },
    delivery_retry: async () => {
      const id = await delivery('failed', (await subscription()).id);
      return {
        method: 'POST',
        path: `/admin/v1/deliveries/${id}/retry`,
        action: 'delivery.retried',
        subject: `delivery/${id}`,
        before: { state: 'failed', generation: 1 },
        after: { state: 'waiting', generation: 2 },
      };
    },
    replay_create: () =>
      Promise.resolve({
        method: 'POST',
        path: '/admin/v1/replays',
        body: { selection: asked, ratePerSecond: 5, startAt: '2999-01-01T00:00:00Z' },
        action: 'replay.created',
        subject: expect.stringMatching(/^replay\//) as unknown as string,
        before: null,
        after: {
          kind: 'replay',
          selection: asked,
          states: ['failed', 'expired'],
          onlyMissed: true,
          ratePerSecond: 5,
          startAt: '2999-01-01T00:00:00.000Z',
          stopAt: null,
          note: null,
          count: 0,
        },
      }),
    replay_pause: () => replayCommand(scene, 'pause', 'paused', 'scheduled', 'paused'),
    replay_resume: () => replayCommand(scene, 'resume', 'resumed', 'paused', 'scheduled'),
    replay_cancel: () => replayCommand(scene, 'cancel', 'cancelled', 'scheduled', 'cancelled'),
    deliveries_cancel: () => ending('cancel', ['queued', 'waiting', 'held', 'sending']),
    deliveries_close: () => ending('close', ['failed', 'expired', 'unknown']),
    delivery_cancel: async () => {
      const id = await delivery('waiting');
      return {
        method: 'POST',
        path: `/admin/v1/deliveries/${id}/cancel`,
        action: 'delivery.cancelled',
        subject: `delivery/${id}`,
        before: { state: 'waiting', generation: 1 },
        after: { state: 'cancelled', generation: 2 },
      };
    },
    erasure_create: async () => {
      const mainObject = `https://example.org/${randomUUID()}`;
      return {
        method: 'POST',
        path: '/admin/v1/erasures',
        body: { mainObject },
        action: 'erasure.requested',
        subject: expect.stringMatching(/^erasure\//) as unknown as string,
        before: null,
        after: { notification: null, mainObjectHash: createHash('sha256').update(mainObject).digest('hex') },
      };
    },
    erasure_confirm: async () => {
      const { json } = await scene.admin.post('/admin/v1/erasures', { mainObject: 'https://example.org/1' });
      await sql(`UPDATE erasure SET state = 'counted', found = 3 WHERE id = $1`, [json.id]);
      return {
        method: 'POST',
        path: `/admin/v1/erasures/${json.id}/confirm`,
        body: { confirm: 3 },
        action: 'erasure.confirmed',
        subject: `erasure/${json.id}`,
        before: { state: 'counted' },
        after: { state: 'erasing', found: 3 },
      };
    },
  };
}

async function replay(scene: AuditScene, ...commands: string[]): Promise<string> {
  const { json } = await scene.admin.post('/admin/v1/replays', { selection: asked });
  for (const command of commands) await scene.admin.post(`/admin/v1/replays/${json.id}/${command}`);
  return json.id;
}

async function replayCommand(
  scene: AuditScene,
  command: string,
  done: string,
  before: string,
  after: string,
): Promise<Call> {
  const id = await (before === 'paused' ? replay(scene, 'pause') : replay(scene));
  return {
    method: 'POST',
    path: `/admin/v1/replays/${id}/${command}`,
    action: `replay.${done}`,
    subject: `replay/${id}`,
    before: { state: before },
    after: { state: after },
  };
}

const ending = (kind: 'cancel' | 'close', states: string[]): Promise<Call> =>
  Promise.resolve({
    method: 'POST',
    path: `/admin/v1/deliveries/${kind}`,
    body: { selection: asked, note: 'the receiver is gone' },
    action: 'replay.created',
    subject: expect.stringMatching(/^replay\//) as unknown as string,
    before: null,
    after: {
      kind,
      selection: asked,
      states,
      onlyMissed: true,
      ratePerSecond: null,
      startAt: null,
      stopAt: null,
      note: 'the receiver is gone',
      count: 0,
    },
  });
