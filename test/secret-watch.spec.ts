import { describe, expect, it } from 'vitest';
import { SecretWatch } from './support/secret-watch.js';

describe('the watch for secrets in logs and answers', () => {
  const plain = new Headers({ 'content-type': 'application/json' });
  const once = new Headers({ 'cache-control': 'no-store', 'content-type': 'application/json' });

  function watching(): SecretWatch {
    const watch = new SecretWatch();
    watch.knowSettings({ SUPERUSER_SECRET: 'of the superuser', SECRET_KEYS: 'a:AAAAAAAAAAAA,b:BBBBBBBBBBBB' });
    const authorization = { kind: 'zgw', secret: 'of-zgw "quoted"' };
    const credentials = { authorization, headers: { 'x-api-key': 'of-a-header' } };
    watch.knowOf(
      { callbackUrl: 'http://receiver/', auth: 'Bearer of-the-receiver', credentials },
      'Bearer of.the.token',
    );
    return watch;
  }

  it.each([
    'of the superuser',
    'BBBBBBBBBBBB',
    'Bearer of-the-receiver',
    'of-the-receiver',
    'of-a-header',
    'of.the.token',
    String.raw`of-zgw \"quoted\"`,
  ])('finds %s in a line, in an answer, and in a header of an answer', (secret) => {
    const watch = watching();
    expect(watch.leaks()).toEqual([]);
    watch.line(`{"event":"x","reason":"${secret}"}`);
    expect(watch.leaks()).not.toEqual([]);
    for (const [headers, text] of [
      [plain, `{"auth":"${secret}"}`],
      [new Headers({ location: secret }), ''],
      [once, `{"id":"1","label":"${secret}"}`],
    ] as const) {
      const other = watching();
      other.answer('GET /', headers, text);
      expect(other.leaks()).not.toEqual([]);
    }
  });

  it('finds one that was logged before it was known, and one that was made for the test', () => {
    const watch = watching();
    watch.line('{"reason":"made here"}');
    watch.answer('POST /admin/v1/applications', once, '{"id":"1","secret":"made here"}');
    expect(watch.leaks()).toHaveLength(1);
  });
});
