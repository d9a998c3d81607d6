import { describe, expect, it } from 'vitest';
import { pageToSend } from './pull-io.js';

const fetched = { id: '019a9f3e-8c00-7000-8000-0123456789ab', acceptedAt: new Date(0), deliverAfter: null };
const next = { after: fetched.id, seen: [] };

describe('what a subscriber fetches', () => {
  it('has the very text of each notification', () => {
    const body = '{"kanaal":"cases", "kenmerken":{ "a":"\\u00e9"}}';
    const text = pageToSend({ notifications: [{ ...fetched, state: 'failed', body }], next, isMore: true });
    expect(text).toContain(`"notificatie":${body}}`);
    expect(JSON.parse(text)).toMatchObject({
      notificaties: [{ id: fetched.id, acceptedAt: '1970-01-01T00:00:00.000Z', isDelivered: false }],
      more: true,
    });
  });

  it('says why there is no text, and when there will be', () => {
    const absent = { ...fetched, state: 'waiting' as const, body: null };
    const text = pageToSend({
      notifications: [{ ...absent, deliverAfter: new Date(60_000) }, absent],
      next,
      isMore: false,
    });
    expect((JSON.parse(text) as { notificaties: object[] }).notificaties).toEqual([
      {
        id: fetched.id,
        acceptedAt: '1970-01-01T00:00:00.000Z',
        isDelivered: false,
        absent: 'scheduled',
        deliverAfter: '1970-01-01T00:01:00.000Z',
      },
      { id: fetched.id, acceptedAt: '1970-01-01T00:00:00.000Z', isDelivered: false, absent: 'erased' },
    ]);
  });
});
