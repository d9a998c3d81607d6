import { expect } from 'vitest';
import { randomUUID } from 'node:crypto';
import { inNrc, type AuditScene, type Calls } from './audit-scene.js';

const policy = { maxRetries: 3, backoffFactor: 2, baseFactor: 2, maxDelaySeconds: 100, jitter: 0 };

/** Calls that change applications, channels and what holds for all. */
export function auditedConfiguration(scene: AuditScene): Calls {
  const { secrets, application, channel } = scene;
  return {
    application_create: async () => {
      const clientId = randomUUID();
      return {
        method: 'POST',
        path: '/admin/v1/applications',
        body: { clientId, label: 'New', secret: secrets.application },
        action: 'application.created',
        subject: expect.stringMatching(/^application\//) as unknown as string,
        before: null,
        after: { clientId, label: 'New', scopes: [], isSuperuser: false, alertEmail: null },
        changedSecrets: ['secret'],
      };
    },
    application_change: async () => {
      const id = await application();
      return {
        method: 'PATCH',
        path: `/admin/v1/applications/${id}`,
        body: { label: 'After', secret: secrets.other },
        action: 'application.changed',
        subject: `application/${id}`,
        before: { label: 'Before' },
        after: { label: 'After' },
        changedSecrets: ['secret'],
      };
    },
    application_rotate_secret: async () => {
      const id = await application();
      return {
        method: 'POST',
        path: `/admin/v1/applications/${id}/rotate-secret`,
        action: 'application.secret-rotated',
        subject: `application/${id}`,
        before: {},
        after: {},
        changedSecrets: ['secret'],
      };
    },
    application_delete: async () => {
      const id = await application();
      return {
        method: 'DELETE',
        path: `/admin/v1/applications/${id}`,
        action: 'application.deleted',
        subject: `application/${id}`,
        before: expect.objectContaining({ label: 'Before' }) as object,
        after: null,
      };
    },
    channel_create: () => {
      const name = randomUUID();
      return Promise.resolve({
        method: 'POST',
        path: '/admin/v1/channels',
        body: { name, filters: ['kind'], maxAgeSeconds: 60 },
        action: 'channel.created',
        subject: expect.stringMatching(/^channel\//) as unknown as string,
        before: null,
        after: { name, documentationLink: '', filters: ['kind'], maxAge: 60 },
      });
    },
    channel_change: async () => {
      const { id } = await channel();
      return {
        method: 'PATCH',
        path: `/admin/v1/channels/${id}`,
        body: { maxAgeSeconds: 60, deduplication: { fields: ['resourceUrl'], withinSeconds: 5 }, bodyRetentionDays: 3 },
        action: 'channel.changed',
        subject: `channel/${id}`,
        before: { maxAge: null, deduplicateBy: null, deduplicateWithin: 604_800, bodyRetentionDays: null },
        after: { maxAge: 60, deduplicateBy: ['resourceUrl'], deduplicateWithin: 5, bodyRetentionDays: 3 },
      };
    },
    channel_delete: async () => {
      const { id, name } = await channel();
      return {
        method: 'DELETE',
        path: `/admin/v1/channels/${id}`,
        action: 'channel.deleted',
        subject: `channel/${id}`,
        before: expect.objectContaining({ name, filters: ['kind'], bodyRetentionDays: null }) as object,
        after: null,
      };
    },
    kanaal_create: async () => {
      const naam = randomUUID();
      return {
        method: 'POST',
        path: inNrc('/kanaal'),
        body: { naam, filters: ['kind'] },
        action: 'channel.created',
        subject: expect.stringMatching(/^channel\//) as unknown as string,
        before: null,
        after: { name: naam, documentationLink: '', filters: ['kind'] },
      };
    },
    kanaal_update: async () => {
      const { id, name } = await channel();
      return {
        method: 'PUT',
        path: inNrc(`/kanaal/${id}`),
        body: { naam: name, documentatieLink: 'https://docs.example.org', filters: ['kind'] },
        action: 'channel.changed',
        subject: `channel/${id}`,
        before: { documentationLink: '' },
        after: { documentationLink: 'https://docs.example.org' },
      };
    },
    kanaal_partial_update: async () => {
      const { id } = await channel();
      return {
        method: 'PATCH',
        path: inNrc(`/kanaal/${id}`),
        body: { filters: ['kind', 'more'] },
        action: 'channel.changed',
        subject: `channel/${id}`,
        before: { filters: ['kind'] },
        after: { filters: ['kind', 'more'] },
      };
    },
    configuration_apply: async () => {
      const { id, name } = await channel();
      return {
        method: 'POST',
        path: '/admin/v1/configuration/apply',
        body: { channels: [{ name, filters: ['kind', 'more'] }] },
        action: 'channel.changed',
        subject: `channel/${id}`,
        before: { filters: ['kind'] },
        after: { filters: ['kind', 'more'] },
      };
    },
    configuration_text_apply: async () => {
      const { id, name } = await channel();
      return {
        method: 'POST',
        path: '/admin/v1/configuration/text/apply',
        body: { text: `channels: [{ name: ${name}, maxAgeSeconds: 60 }]` },
        action: 'channel.changed',
        subject: `channel/${id}`,
        before: { maxAge: null },
        after: { maxAge: 60 },
      };
    },
    retry_policy_replace: async () => {
      await scene.admin.put('/admin/v1/retry-policy', policy);
      return {
        method: 'PUT',
        path: '/admin/v1/retry-policy',
        body: { ...policy, maxRetries: 4 },
        action: 'retry-policy.changed',
        subject: 'retry-policy',
        before: { maxRetries: 3 },
        after: { maxRetries: 4 },
      };
    },
    alert_rules_replace: async () => {
      await scene.admin.put('/admin/v1/alert-rules', {});
      const more = (count: number) => ({ deadLetters: { isEnabled: true, count } });
      return {
        method: 'PUT',
        path: '/admin/v1/alert-rules',
        body: more(2),
        action: 'alert-rules.changed',
        subject: 'alert-rules',
        before: more(1),
        after: more(2),
      };
    },
    sign_in_ticket_create: () =>
      Promise.resolve({
        method: 'POST',
        path: '/admin/v1/sign-in-tickets',
        action: 'sign-in-ticket.made',
        subject: 'sign-in-ticket',
        before: null,
        after: { expiresAt: expect.any(String) },
      }),
    alert_test: () =>
      Promise.resolve({
        method: 'POST',
        path: '/admin/v1/alerts/test',
        action: 'alerts.tested',
        subject: 'alerts',
        before: {},
        after: {},
      }),
  };
}
