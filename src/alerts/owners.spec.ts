import { describe, expect, it } from 'vitest';
import type { Subscription } from '../subscriptions/subscription.js';
import type { Alert } from './alert.js';
import { mostAddresses, Owners } from './owners.js';

let subscriptions = 0;
const subscription = (ownerClientId: string, alertEmail: string, parts: Partial<Subscription> = {}): Subscription =>
  ({
    id: `s${(subscriptions += 1)}`,
    ownerClientId,
    alertEmail,
    callbackUrl: 'https://receiver.example/hook',
    credentials: {},
    disabledAt: null,
    ...parts,
  }) as unknown as Subscription;

const ownersOf = (known: readonly Subscription[]): Owners =>
  new Owners({ find: (id) => known.find((each) => each.id === id), all: () => known }, { find: () => undefined });

const endpointOpen = {
  id: '1',
  rule: 'endpoint-open',
  subject: 'endpoint/https://receiver.example',
  details: {},
} as unknown as Alert;
const disabled = (subscriptionId: string) =>
  ({ id: '2', rule: 'subscription-disabled', details: { subscriptionId } }) as unknown as Alert;

describe('the owners of subscriptions', () => {
  const strangers = Array.from({ length: 1000 }, (_, nr) =>
    subscription('spammer', `stranger-${String(nr).padStart(4, '0')}@example.org`),
  );

  it('are told of an endpoint up to a number, and one who names any number of addresses leaves room for the others', () => {
    const others = Array.from({ length: 60 }, (_, nr) => subscription(`app-${nr}`, `team-${nr}@example.org`));
    const owners = ownersOf([...strangers, ...others]);
    const found = owners.of(endpointOpen);
    expect(found).toHaveLength(mostAddresses);
    expect(found).toEqual(expect.arrayContaining(others.map(({ alertEmail }) => alertEmail)));
    expect([...owners.leftOut]).toEqual([['1', 1060 - mostAddresses]]);
  });

  it('that are one application get mail at a number of addresses, the same ones whatever it is about', () => {
    const owners = ownersOf(strangers);
    const told = [...strangers].reverse().flatMap(({ id }) => owners.of(disabled(id)));
    expect(new Set(told).size).toBe(mostAddresses);
    expect(
      ownersOf([...strangers].reverse())
        .of(endpointOpen)
        .sort(),
    ).toEqual(told.sort());
  });

  it('are all told where they are few, each once', () => {
    const few = ['a', 'b', 'b'].map((name) => subscription(name, `${name}@example.org`));
    const owners = ownersOf([...few, subscription('c', 'a@example.org')]);
    expect([owners.of(endpointOpen).sort(), owners.leftOut.size]).toEqual([['a@example.org', 'b@example.org'], 0]);
  });

  it('are told of a parked endpoint where their deliveries are held, which are none of a disabled subscription', () => {
    const owners = ownersOf([
      subscription('a', 'live@example.org'),
      subscription('b', 'disabled@example.org', { disabledAt: new Date() }),
      subscription('c', 'elsewhere@example.org', { callbackUrl: 'https://other.example/hook' }),
    ]);
    for (const address of ['https://receiver.example', 'https://receiver.example/hook'])
      expect(owners.of({ ...endpointOpen, subject: `endpoint/${address}` })).toEqual(['live@example.org']);
  });

  it('are told of the end of their disabled subscription', () => {
    const one = subscription('a', 'disabled@example.org', { disabledAt: new Date() });
    expect(ownersOf([one]).of(disabled(one.id))).toEqual(['disabled@example.org']);
  });
});
