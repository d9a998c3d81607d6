import { describe, expect, it } from 'vitest';
import { Cors } from './cors.js';

const origin = 'https://app.example.org';
const preflight = (from: string) => ({ origin: from, 'access-control-request-method': 'POST' });

describe('CORS', () => {
  it('for every origin needs no Vary, and answers each preflight', () => {
    const cors = new Cors(['*']);
    expect(cors.headersOf({ origin }).slice(0, 2)).toEqual(['access-control-allow-origin', '*']);
    expect(cors.headersOf({})).not.toContain('vary');
    expect(cors.preflightHeadersOf(preflight('null'), 'GET, OPTIONS')).toMatchObject({
      'access-control-allow-methods': 'GET, OPTIONS',
    });
  });

  it('for some origins names the one that asks, and none other', () => {
    const cors = new Cors([origin, 'https://other.example.org']);
    expect(cors.headersOf({ origin }).slice(0, 4)).toEqual(['vary', 'Origin', 'access-control-allow-origin', origin]);
    expect(cors.headersOf({ origin: 'https://evil.example' })).toEqual(['vary', 'Origin']);
    expect(cors.headersOf({})).toEqual(['vary', 'Origin']);
    expect(cors.preflightHeadersOf(preflight('https://evil.example'), 'GET')).toEqual({});
  });

  it('lets a page read the tag of a resource, and change it under that', () => {
    const cors = new Cors([origin]);
    expect(cors.headersOf({ origin }).at(-1)).toMatch(/\betag\b/);
    expect(cors.preflightHeadersOf(preflight(origin), 'PATCH')['access-control-allow-headers']).toMatch(/\bif-match\b/);
  });

  it('lets a page name its request, and read the id that the audit log has of it', () => {
    const cors = new Cors([origin]);
    expect(cors.headersOf({ origin }).at(-1)).toMatch(/\bx-request-id\b/);
    const allowed = cors.preflightHeadersOf(preflight(origin), 'PATCH')['access-control-allow-headers'];
    expect(allowed).toMatch(/\bx-request-id\b/);
  });

  it.each(['traceparent', 'tracestate', 'baggage'])('lets a page that is traced publish: it sends %s', (name) => {
    const allowed = new Cors([origin]).preflightHeadersOf(preflight(origin), 'POST')['access-control-allow-headers'];
    expect(allowed?.split(', ')).toContain(name);
  });

  it('takes OPTIONS without a method that is asked for as no preflight', () => {
    expect(new Cors([origin]).preflightHeadersOf({ origin }, 'GET')).toEqual({});
  });
});
