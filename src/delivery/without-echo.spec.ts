import { describe, expect, it, vi } from 'vitest';
import { answered, unanswered } from '../../test/support/responses.js';
import { withoutEcho } from './without-echo.js';

const headers = {
  'content-type': 'application/json',
  authorization: 'Bearer abcdefgh.ijkl',
  'webhook-id': '0199-notification',
  'x-api-key': 'key "of" the gateway',
  'x-tenant': 'short',
};
const clean = (body: string, answerHeaders: Record<string, string> = {}) => {
  const response = withoutEcho(answered(401, { body, headers: answerHeaders }), { headers });
  return response.kind === 'answered' && [response.body, response.headers];
};

describe('what is kept of an answer', () => {
  it.each([
    ['Invalid: Bearer abcdefgh.ijkl!', 'Invalid: [secret]!'],
    ['token abcdefgh.ijkl, again abcdefgh.ijkl', 'token [secret], again [secret]'],
    [String.raw`{"got":"key \"of\" the gateway"}`, '{"got":"[secret]"}'],
    ['cut off: Bearer abcdefg', 'cut off: [secret]'],
    ['cut off: abcdefgh.ijk', 'cut off: [secret]'],
    [String.raw`{"Authorization":"bearer abcdefgh\u002Eijkl"}`, '{"Authorization":"[secret]"}'],
    ['key+%22of%22+the+gateway', '[secret]'],
    ['key &quot;of&quot; the gateway', '[secret]'],
    [`got ${Buffer.from('Bearer abcdefgh.ijkl').toString('base64')}`, 'got [secret]='],
    ['0199-notification application/json short', '0199-notification application/json short'],
  ])('holds no secret of the call: %s', (body, kept) => {
    expect(clean(body, { 'www-authenticate': body })).toEqual([kept, { 'www-authenticate': kept }]);
  });

  it('holds neither the secret of Basic as it is sent, nor what that says', () => {
    const basic = { authorization: `Basic ${Buffer.from('heraut:pass word/1').toString('base64')}` };
    const body = `basic ${basic.authorization.slice(6)}: heraut:pass word/1, heraut and pass%20word%2f1`;
    const response = withoutEcho(answered(401, { body }), { headers: basic });
    expect(response).toMatchObject({ body: '[secret]: [secret], heraut and [secret]' });
  });

  it('names the trace of the call, by which somebody finds it', () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const body = `no: ${traceparent}`;
    expect(withoutEcho(answered(500, { body }), { headers: { traceparent } })).toMatchObject({ body });
  });

  it('holds no own header of the subscription that is named like the trace, and holds something else', () => {
    const response = withoutEcho(answered(500, { body: 'no: key of gateway' }), {
      headers: { traceparent: 'key of gateway' },
    });
    expect(response).toMatchObject({ body: 'no: [secret]' });
  });

  it('is left out where the call held more secrets than can be looked for, as those that were stored long ago may', () => {
    const stored = Object.fromEntries(Array.from({ length: 50 }, (_, nr) => [`x-${nr}`, `${nr}`.padEnd(8192, 'a')]));
    const forms = vi.spyOn(Buffer, 'from');
    const response = withoutEcho(answered(401, { body: 'refused: aaaaaaaaaaaa', headers: { server: 'some server' } }), {
      headers: { ...headers, ...stored },
    });
    expect(forms).not.toHaveBeenCalled();
    forms.mockRestore();
    const kept = expect.stringMatching(/^\[left out: /);
    expect(response).toMatchObject({ status: 401, body: kept, headers: { server: kept } });
  });

  it('is as it was where there is nothing of it', () => {
    for (const response of [answered(204), unanswered('ECONNRESET: abcdefgh.ijkl')])
      expect(withoutEcho(response, { headers })).toBe(response);
  });
});
