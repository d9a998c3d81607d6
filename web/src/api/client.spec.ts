import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';

let now = 0;
const sent: Request[] = [];

beforeAll(() => {
  vi.stubGlobal('document', { baseURI: 'http://heraut.example/console/' });
  vi.stubGlobal('addEventListener', () => undefined);
  vi.stubGlobal('fetch', (request: Request) => {
    sent.push(request);
    return Promise.resolve(Response.json({}));
  });
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => void sent.splice(0));
afterAll(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it.each(['GET', 'POST', 'DELETE'])(
  'says of a %s that nobody asked for lately that it is no use of the session',
  async (method) => {
    const { callConsole } = await import('./client.ts');
    await callConsole(method, 'session');
    now += 61_000;
    await callConsole(method, 'session');
    now -= 61_000;
    expect(sent.map(({ headers }) => headers.get('x-heraut-console'))).toEqual(['1', '0']);
  },
);
