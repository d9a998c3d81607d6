import { describe, expect, it } from 'vitest';
import { checkInput } from '../infra/http/check-input.js';
import { filtersPreviewInput, newSubscriptionInput, subscriptionChangesInput } from './subscription-input.js';

describe('a filter with the name __proto__', () => {
  const channels = JSON.parse('[{ "channel": "cases", "filters": { "kind": "a", "__proto__": "b" } }]') as unknown;
  const whole = {
    ownerClientId: 'owner',
    callbackUrl: 'https://receiver.example.org/',
    credentials: { authorization: { kind: 'verbatim', auth: 'Bearer x' } },
    channels,
  };

  it.each([
    ['a new subscription', newSubscriptionInput, whole],
    ['a change of one', subscriptionChangesInput, { channels }],
    ['a preview', filtersPreviewInput, { channels }],
  ] as const)(
    'is refused in %s: without it, the subscription would get more than was asked for',
    (_, schema, input) => {
      const name = 'channels.0.filters.__proto__';
      expect(() => checkInput(schema, input)).toThrow(
        expect.objectContaining({
          extra: { invalidParams: [{ name, code: 'invalid', reason: 'Not a name that can be used here.' }] },
        }),
      );
    },
  );
});
