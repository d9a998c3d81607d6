import { expect } from 'vitest';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import { inNrc, type AuditScene, type Call, type Calls } from './audit-scene.js';

/** Calls that change subscriptions, through either API. */
export function auditedSubscriptions(scene: AuditScene): Calls {
  const { operator, secrets, channel, abonnement, subscription, delivery } = scene;
  return {
    abonnement_create: async () => {
      const { name } = await channel();
      return {
        method: 'POST',
        path: inNrc('/abonnement'),
        body: abonnement(name),
        action: 'subscription.created',
        subject: expect.stringMatching(/^subscription\//) as unknown as string,
        before: null,
        after: {
          ownerClientId: operator.clientId,
          callbackUrl: scene.receiver.url,
          channels: [{ channel: name, filters: {} }],
          deliveryGuarantee: null,
          timeoutSeconds: null,
          maxConcurrency: null,
          ratePerSecond: null,
          ordering: 'none',
          alertEmail: null,
          disabledAt: null,
          pausedAt: null,
        },
        changedSecrets: ['auth'],
      };
    },
    abonnement_update: async () => {
      const { id, channel: name } = await subscription();
      return {
        method: 'PUT',
        path: inNrc(`/abonnement/${id}`),
        body: abonnement(name, { callbackUrl: `${scene.receiver.url}/other`, auth: `Bearer ${secrets.other}` }),
        action: 'subscription.changed',
        subject: `subscription/${id}`,
        before: { callbackUrl: scene.receiver.url },
        after: { callbackUrl: `${scene.receiver.url}/other` },
        changedSecrets: ['auth'],
      };
    },
    abonnement_partial_update: async () => {
      const { id } = await subscription();
      return {
        method: 'PATCH',
        path: inNrc(`/abonnement/${id}`),
        body: { deliveryGuarantee: 'at-most-once', auth: secrets.auth },
        action: 'subscription.changed',
        subject: `subscription/${id}`,
        before: { deliveryGuarantee: null },
        after: { deliveryGuarantee: 'at-most-once' },
      };
    },
    abonnement_delete: async () => {
      const { id } = await subscription();
      return {
        method: 'DELETE',
        path: inNrc(`/abonnement/${id}`),
        action: 'subscription.deleted',
        subject: `subscription/${id}`,
        before: expect.objectContaining({ callbackUrl: scene.receiver.url }) as object,
        after: null,
      };
    },
    subscription_create: async () => {
      const { name } = await channel();
      const authorization = { kind: 'verbatim', auth: secrets.auth };
      return {
        method: 'POST',
        path: '/admin/v1/subscriptions',
        body: {
          ownerClientId: operator.clientId,
          callbackUrl: scene.receiver.url,
          channels: [{ channel: name }],
          credentials: { authorization },
        },
        action: 'subscription.created',
        subject: expect.stringMatching(/^subscription\//) as unknown as string,
        before: null,
        after: expect.objectContaining({ ownerClientId: operator.clientId, callbackUrl: scene.receiver.url }) as object,
        changedSecrets: ['auth'],
      };
    },
    subscription_delete: async () => {
      const { id } = await subscription();
      return {
        method: 'DELETE',
        path: `/admin/v1/subscriptions/${id}`,
        action: 'subscription.deleted',
        subject: `subscription/${id}`,
        before: expect.objectContaining({ callbackUrl: scene.receiver.url }) as object,
        after: null,
      };
    },
    subscription_test: async () => {
      const { id } = await subscription();
      return {
        method: 'POST',
        path: `/admin/v1/subscriptions/${id}/test`,
        action: 'subscription.tested',
        subject: `subscription/${id}`,
        before: {},
        after: {},
      };
    },
    subscription_change: async () => {
      const { id } = await subscription();
      return {
        method: 'PATCH',
        path: `/admin/v1/subscriptions/${id}`,
        body: { ratePerSecond: 5, ordering: 'per-object' },
        action: 'subscription.changed',
        subject: `subscription/${id}`,
        before: { ratePerSecond: null, ordering: 'none' },
        after: { ratePerSecond: 5, ordering: 'per-object' },
      };
    },
    subscription_change_credentials: async () => {
      const { id } = await subscription();
      return {
        method: 'PATCH',
        path: `/admin/v1/subscriptions/${id}/credentials`,
        body: { headers: { 'x-api-key': secrets.other } },
        action: 'subscription.credentials-changed',
        subject: `subscription/${id}`,
        before: {},
        after: {},
        changedSecrets: ['credentials'],
      };
    },
    signing_key_create: () => signingKeyCreate(scene, ofAdmin),
    signing_key_rotate: () => signingKeyRotate(scene, ofAdmin),
    signing_key_end: () => signingKeyEnd(scene, ofAdmin),
    signingkey_create: () => signingKeyCreate(scene, ofOwner),
    signingkey_rotate: () => signingKeyRotate(scene, ofOwner),
    signingkey_delete: () => signingKeyEnd(scene, ofOwner),
    subscription_enable: async () => {
      const { id } = await subscription();
      await scene.admin.api.app.get(SubscriptionsService).disable(id);
      return {
        method: 'POST',
        path: `/admin/v1/subscriptions/${id}/enable`,
        action: 'subscription.enabled',
        subject: `subscription/${id}`,
        before: { disabledAt: expect.any(String) },
        after: { disabledAt: null },
      };
    },
    subscription_pause: async () => {
      const { id } = await subscription();
      return {
        method: 'POST',
        path: `/admin/v1/subscriptions/${id}/pause`,
        action: 'subscription.paused',
        subject: `subscription/${id}`,
        before: { pausedAt: null },
        after: { pausedAt: expect.any(String) },
      };
    },
    subscription_resume: async () => {
      const { id } = await subscription('pause');
      return {
        method: 'POST',
        path: `/admin/v1/subscriptions/${id}/resume`,
        action: 'subscription.resumed',
        subject: `subscription/${id}`,
        before: { pausedAt: expect.any(String) },
        after: { pausedAt: null },
      };
    },
    subscription_drop_held: async () => {
      const { id } = await subscription('pause');
      const held = await delivery('held', id);
      return {
        method: 'POST',
        path: `/admin/v1/subscriptions/${id}/drop-held`,
        action: 'subscription.held-dropped',
        subject: `subscription/${id}`,
        before: {},
        after: { upToNotification: held.split('/')[0] },
      };
    },
    subscription_retry_policy_replace: async () => {
      const { id } = await subscription();
      return {
        method: 'PUT',
        path: `/admin/v1/subscriptions/${id}/retry-policy`,
        body: { maxRetries: 1 },
        action: 'subscription.retry-policy-changed',
        subject: `subscription/${id}`,
        before: {},
        after: { maxRetries: 1 },
      };
    },
    subscription_retry_policy_delete: async () => {
      const { id } = await subscription();
      await scene.admin.put(`/admin/v1/subscriptions/${id}/retry-policy`, { jitter: 0.5 });
      return {
        method: 'DELETE',
        path: `/admin/v1/subscriptions/${id}/retry-policy`,
        action: 'subscription.retry-policy-changed',
        subject: `subscription/${id}`,
        before: { jitter: 0.5 },
        after: {},
      };
    },
  };
}

type PathOfKeys = (subscriptionId: string) => string;
const ofAdmin: PathOfKeys = (id) => `/admin/v1/subscriptions/${id}/signing-keys`;
const ofOwner: PathOfKeys = (id) => inNrc(`/abonnement/${id}/signing-keys`);
const signs = { scheme: 'v1', publicKey: null, endsAt: null };

async function signingKeyCreate(scene: AuditScene, pathOf: PathOfKeys): Promise<Call> {
  const { id } = await scene.subscription();
  return {
    method: 'POST',
    path: pathOf(id),
    body: {},
    action: 'subscription.signing-key-created',
    subject: `subscription/${id}`,
    before: {},
    after: expect.any(Object) as object,
  };
}

async function signingKeyRotate(scene: AuditScene, pathOf: PathOfKeys): Promise<Call> {
  const { id } = await scene.subscription();
  const { json } = await scene.admin.post(ofAdmin(id), {});
  return {
    method: 'POST',
    path: `${pathOf(id)}/${json.id}/rotate`,
    body: {},
    action: 'subscription.signing-key-rotated',
    subject: `subscription/${id}`,
    before: { [`signing-key/${json.id}`]: signs },
    after: expect.objectContaining({
      [`signing-key/${json.id}`]: { ...signs, endsAt: expect.any(String) },
    }) as object,
  };
}

async function signingKeyEnd(scene: AuditScene, pathOf: PathOfKeys): Promise<Call> {
  const { id } = await scene.subscription();
  const { json } = await scene.admin.post(ofAdmin(id), {});
  return {
    method: 'DELETE',
    path: `${pathOf(id)}/${json.id}`,
    action: 'subscription.signing-key-ended',
    subject: `subscription/${id}`,
    before: { [`signing-key/${json.id}`]: signs },
    after: {},
  };
}
