import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createPublicKey, verify } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { signatureHeaders, type MessageToSign } from './signature-headers.js';
import { newKey, SigningKey, type SigningScheme } from './signing-key.js';

// The vectors: made with node:crypto, each cross-checked with OpenSSL 3; KAT is the known answer that Standard Webhooks
// publish.

const secrets = {
  K32: 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=',
  K24: 'whsec_//79/Pv6+fj39vX08/Lx8O/u7ezr6uno',
  K64: 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==',
  KAT: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
};
const ed25519 = {
  SEED: 'whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8DoQe/884Qvh1w3RjnS8CZZ+TWMJulDV8d3IZkElUxuA==',
  KAT: 'whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==',
};

const message = (body: string | Buffer, more: { id?: string; seconds?: number } = {}): MessageToSign => ({
  id: more.id ?? 'msg_01HZX5T9V6Q3M8K2B4N7C1D0EF',
  at: (more.seconds ?? 1735689600) * 1000,
  body: Buffer.from(body),
});

const userCreated = '{"type":"user.created","timestamp":"2025-01-01T00:00:00Z","data":{"id":"42"}}';
const B1 = message(userCreated);
const KAT = message('{"test": 2432232314}', { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', seconds: 1614265330 });
const messages = {
  B1,
  B1r: message(userCreated, { seconds: 1735689605 }),
  B2: message('{"naam":"Zaak één € 😀"}'),
  B3: message(''),
  B4: message('{ "a" : 1 }\n'),
  B5: message(Buffer.from('00ff800a', 'hex')),
  S1: message(
    '{"type":"contact.created","timestamp":"2022-11-03T20:26:10.344522Z","data":{"id":"1f81eb52-5198-4599-803e-771906343485"}}',
    { id: 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W', seconds: 1674087231 },
  ),
  KAT,
};

let made = 0;
const key = (scheme: SigningScheme, secret: string, endsAt: number | null = null) =>
  new SigningKey(String(made++), scheme, secret, endsAt);
const signatureOf = (keys: SigningKey[], what: MessageToSign) => signatureHeaders(keys, what)?.['webhook-signature'];

describe('a signature of scheme v1', () => {
  it.each<[keyof typeof messages, keyof typeof secrets, string]>([
    ['B1', 'K32', 'K4WOxhKa5B2aDQdU7nqa4SU07Q7ThWo/HfAuZEntHXU='],
    ['B1', 'K24', 'uIO9ZHVeJ5avSIRwpuGs74igqBwhPbGO9MvDlIrLZ8A='],
    ['B1', 'K64', '4puq0S9gmE7M72uSAuKfUZMcnTLJsuCDqpq/DbbqpbQ='],
    ['B1r', 'K32', 'KmPmigFKnJ20b1mjw6jqPjoYgpJO8rTKzJrA8P93i4I='],
    ['B2', 'K32', 'UydudHUBUwKF1hSxtxKjFpXffdtZESLj3EBqt2DdxmI='],
    ['B3', 'K32', 'edkdGEsH1uQwd6vG7UTHpKbHRcwoHWE5qYvzu7zL6+4='],
    ['B4', 'K32', '0jWA9KqeJ4/lsMCznp/VFCELLgwjl0JtB96sYtVBJs8='],
    ['B5', 'K32', 'ui36hwV8BkkWpVmGSOmw5x+A3f8sJzNbm3656XQ6qfM='],
    ['S1', 'K32', '4PMU5Dl90B4kgwxDpwuMZ/cnZ5ztf+Y+kviYQD66rJg='],
    ['KAT', 'KAT', 'g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='],
  ])('of %s with %s is the one of the vector', (what, secret, expected) => {
    const { id, at } = messages[what];
    expect(signatureHeaders([key('v1', secrets[secret])], messages[what])).toEqual({
      'webhook-timestamp': String(at / 1000),
      'webhook-signature': `v1,${expected}`,
    });
    expect(id).not.toContain('.');
  });
});

describe('a signature of scheme v1a', () => {
  it.each<[keyof typeof messages, keyof typeof ed25519, string]>([
    ['B1', 'SEED', '0Cp0ilQmqI795nR8xHQ85D68QgxrS6w88QZISMdG2f+YxdNQQuimuEiPClfGnYLVsuRB6Tiztd+lU17Wgo+WBQ=='],
    ['KAT', 'KAT', 'hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=='],
  ])('of %s with the key of %s is the one of the vector', (what, secret, expected) => {
    expect(signatureOf([key('v1a', ed25519[secret])], messages[what])).toBe(`v1a,${expected}`);
  });

  it('can be verified with the public key that is shown', () => {
    const made = newKey('v1a');
    const [, signature = ''] = signatureOf([key('v1a', made.secret)], B1)!.split(',');
    const x = Buffer.from(made.publicKey!.slice('whpk_'.length), 'base64').toString('base64url');
    const publicKey = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } });
    const signed = (body: Buffer) => Buffer.concat([Buffer.from(`${B1.id}.${B1.at / 1000}.`), body]);
    expect(verify(null, signed(B1.body), publicKey, Buffer.from(signature, 'base64'))).toBe(true);
    expect(verify(null, signed(messages.B2.body), publicKey, Buffer.from(signature, 'base64'))).toBe(false);
  });
});

describe('the headers of several keys', () => {
  const [current, old] = [key('v1', secrets.K32), key('v1', secrets.K24, B1.at + 1)];

  it('have a signature of each, in their order', () => {
    expect(signatureOf([current, old], B1)).toBe(
      'v1,K4WOxhKa5B2aDQdU7nqa4SU07Q7ThWo/HfAuZEntHXU= v1,uIO9ZHVeJ5avSIRwpuGs74igqBwhPbGO9MvDlIrLZ8A=',
    );
    const both = signatureOf([key('v1a', ed25519.SEED), current, key('v1a', ed25519.KAT)], B1);
    expect(both!.split(' ').map((each) => each.split(',')[0])).toEqual(['v1a', 'v1', 'v1a']);
  });

  it('leave out a key from the moment on that it ends', () => {
    const at = B1.at + 1;
    expect(signatureOf([current, old], { ...B1, at })).toBe(signatureOf([current], { ...B1, at }));
  });

  it('are none where no key signs any more', () => {
    expect(signatureHeaders([old], { ...B1, at: B1.at + 1 })).toBeUndefined();
    expect(signatureHeaders([], B1)).toBeUndefined();
  });

  it('name the second in which the attempt begins', () => {
    const at = B1.at + 999.9;
    expect(signatureHeaders([current], { ...B1, at })).toEqual(signatureHeaders([current], B1));
  });
});

describe('the published library for receivers', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: B1.at });
  });
  afterEach(() => void vi.useRealTimers());

  type Headers = Record<string, string>;
  const signed = (what: MessageToSign, keys = [key('v1', secrets.K32)]): Headers => ({
    'webhook-id': what.id,
    ...signatureHeaders(keys, what),
  });
  const isAccepted = (body: Buffer, headers: Headers, secret = secrets.K32) => {
    try {
      new Webhook(secret).verify(body, headers, { jsonParse: false });
      return true;
    } catch (error) {
      expect((error as Error).name).toBe('WebhookVerificationError');
      return false;
    }
  };
  const later = (seconds: number): MessageToSign => ({ ...B1, at: B1.at + seconds * 1000 });

  it.each(['B1', 'B1r', 'B2', 'B3', 'B4', 'S1', 'KAT'] as const)('accepts %s', (what) => {
    vi.setSystemTime(messages[what].at);
    expect(isAccepted(messages[what].body, signed(messages[what]))).toBe(true);
  });

  it('accepts what is signed by several keys with any of their secrets', () => {
    const keys = [key('v1a', newKey('v1a').secret), key('v1', secrets.K32), key('v1', secrets.K24, B1.at + 1)];
    const headers = signed(B1, keys);
    expect([secrets.K32, secrets.K24, secrets.K64].map((secret) => isAccepted(B1.body, headers, secret))).toEqual([
      true,
      true,
      false,
    ]);
  });

  it.each([-300, 300])('accepts a timestamp that is %s seconds away', (seconds) => {
    expect(isAccepted(B1.body, signed(later(seconds)))).toBe(true);
  });

  const value = signatureOf([key('v1', secrets.K32)], B1)!.split(',')[1]!;
  const without = (name: string): Headers =>
    Object.fromEntries(Object.entries(signed(B1)).filter(([each]) => each !== name));
  const withSignature = (signature: string): Headers => ({ ...signed(B1), 'webhook-signature': signature });

  it.each<[string, Headers, Buffer?]>([
    ['another body', signed(B1), Buffer.from(userCreated.replace('42', '43'))],
    ['another id', { ...signed(B1), 'webhook-id': `${B1.id}0` }],
    ['a timestamp that is 301 seconds old', signed(later(-301))],
    ['a timestamp that is 301 seconds ahead', signed(later(301))],
    ['a timestamp that is not the signed one', { ...signed(B1), 'webhook-timestamp': String(B1.at / 1000 + 1) }],
    ['a timestamp that is no number', { ...signed(B1), 'webhook-timestamp': 'now' }],
    ['no id', without('webhook-id')],
    ['no timestamp', without('webhook-timestamp')],
    ['no signature', without('webhook-signature')],
    ['an empty signature', withSignature('v1,')],
    ['a signature that is cut off', withSignature(`v1,${value.slice(0, -4)}`)],
    ['only a version that is unknown', withSignature(`v2,${value}`)],
    ['a signature in hexadecimal', withSignature(`v1,${Buffer.from(value, 'base64').toString('hex')}`)],
    ['only a signature of scheme v1a', signed(B1, [key('v1a', ed25519.SEED)])],
  ])('refuses %s', (_, headers, body = B1.body) => {
    expect(isAccepted(body, headers)).toBe(false);
  });

  it('refuses a secret that is only a prefix', () => {
    expect(() => new Webhook('whsec_')).toThrow('empty');
  });
});
