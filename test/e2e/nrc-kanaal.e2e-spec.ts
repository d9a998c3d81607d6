import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { Api, type ApiAnswer } from '../support/api.js';
import { answer, Receiver, redirect } from '../support/receiver.js';

let api: Api;

beforeAll(async () => {
  api = await Api.start();
});

afterAll(() => api.close());

const wrong = ({ status, json }: ApiAnswer) => ({
  status,
  fields: json.invalidParams?.map(({ name, code }) => `${name} ${code}`),
});

const newName = () => randomUUID();

async function create(input: object = {}): Promise<ApiAnswer> {
  const created = await api.post('/kanaal', { naam: newName(), ...input });
  expect(created.status).toBe(201);
  return created;
}

describe('creating a kanaal', () => {
  it('answers with all its fields, and where it is', async () => {
    const input = {
      naam: newName(),
      documentatieLink: 'https://example.org/docs',
      filters: ['zaaktype', 'object_type'],
    };
    const { status, json, headers } = await api.post('/kanaal', input);
    expect(status).toBe(201);
    expect(json).toEqual({ url: json.url, ...input });
    expect(Object.keys(json)).toEqual(['url', 'naam', 'documentatieLink', 'filters']);
    expect(headers.get('location')).toBe(json.url);
    expect((await api.get(json.url)).json).toEqual(json);
  });

  it('gives it a URL that ends in a UUID version 4', async () => {
    const { json } = await create();
    expect(json.url).toMatch(/\/kanaal\/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it('needs no more than a name', async () => {
    expect((await create()).json).toMatchObject({ documentatieLink: '', filters: [] });
  });

  it('accepts names in snake_case and ignores unknown fields', async () => {
    const { json } = await create({ documentatie_link: 'https://example.org/', url: 'https://evil.example/', id: 1 });
    expect(json.documentatieLink).toBe('https://example.org/');
    expect(json.url).toMatch(api.base);
  });

  it('accepts a documentation URL that does not resolve', async () => {
    expect((await create({ documentatieLink: 'http://does-not-exist.invalid/docs' })).status).toBe(201);
  });

  it.each<[string, object, string[]]>([
    ['no name', { naam: undefined }, ['naam required']],
    ['a name that is null', { naam: null }, ['naam null']],
    ['a blank name', { naam: ' ' }, ['naam blank']],
    ['a long name', { naam: 'x'.repeat(51) }, ['naam max_length']],
    ['a name with U+0000', { naam: 'a\0' }, ['naam invalid']],
    ['a documentatieLink that is no URL', { documentatieLink: 'docs' }, ['documentatieLink invalid']],
    [
      'a documentatieLink with a password',
      { documentatieLink: 'https://user:pw@a.example/' },
      ['documentatieLink invalid'],
    ],
    ['a long documentatieLink', { documentatieLink: `http://a/${'x'.repeat(200)}` }, ['documentatieLink max_length']],
    ['filters that are no list', { filters: 'zaaktype' }, ['filters not_a_list']],
    ['filters that are null', { filters: null }, ['filters null']],
    [
      'wrong names',
      { filters: ['a', '', null, 'x'.repeat(101)] },
      ['filters.1 blank', 'filters.2 null', 'filters.3 max_length'],
    ],
    ['too many names', { filters: Array.from({ length: 101 }, (_, nr) => `n${nr}`) }, ['filters max_length']],
    ['everything at once', { naam: '', filters: {} }, ['naam blank', 'filters not_a_list']],
  ])('refuses %s', async (_, input, fields) => {
    expect(wrong(await api.post('/kanaal', { naam: newName(), ...input }))).toEqual({ status: 400, fields });
  });

  it('refuses the name of another kanaal', async () => {
    const { json } = await create();
    expect(wrong(await api.post('/kanaal', { naam: json.naam }))).toEqual({ status: 400, fields: ['naam unique'] });
  });

  it('gives a name to one of many requests at the same time', async () => {
    const naam = newName();
    const answers = await Promise.all(Array.from({ length: 8 }, () => api.post('/kanaal', { naam })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 400, 400, 400, 400, 400, 400, 400]);
  });
});

describe('finding kanalen', () => {
  it('lists all of them, or the one with a name', async () => {
    const [one, other] = [await create(), await create()];
    expect((await api.get('/kanaal')).list).toEqual(expect.arrayContaining([one.json, other.json]));
    expect((await api.get(`/kanaal?naam=${String(one.json.naam)}`)).list).toEqual([one.json]);
    expect((await api.get(`/kanaal?naam=${newName()}`)).list).toEqual([]);
    expect((await api.get(`/kanaal?naam=${String(one.json.naam).toUpperCase()}`)).list).toEqual([]);
    expect((await api.get('/kanaal?naam=')).list.length).toBeGreaterThan(1);
  });

  it.each(['/kanaal?nam=x', '/kanaal?naam=x&page=2', '/kanaal?__proto__=x', '/kanaal?naam[]=x'])(
    'refuses a parameter it does not know: %s',
    async (path) => {
      expect(wrong(await api.get(path))).toEqual({ status: 400, fields: ['nonFieldErrors unknown-parameters'] });
    },
  );

  it('refuses every parameter for a single one', async () => {
    const { json } = await create();
    expect(wrong(await api.get(`${json.url}?naam=x`)).fields).toEqual(['nonFieldErrors unknown-parameters']);
  });
});

describe('changing a kanaal', () => {
  it('replaces by PUT what is given, as Open Notificaties does; what is left out stays', async () => {
    const { json } = await create({ documentatieLink: 'https://example.org/', filters: ['a'] });
    const put = await api.put(json.url, { naam: json.naam, filters: ['b'] });
    expect([put.status, put.json]).toEqual([200, { ...json, filters: ['b'] }]);
    expect((await api.put(json.url, { naam: json.naam })).json).toEqual(put.json);
    expect((await api.get(json.url)).json).toEqual(put.json);
    const emptied = await api.put(json.url, { naam: json.naam, documentatieLink: '', filters: [] });
    expect(emptied.json).toEqual({ ...json, documentatieLink: '', filters: [] });
  });

  it('changes what is given by PATCH', async () => {
    const { json } = await create({ documentatieLink: 'https://example.org/', filters: ['a'] });
    expect((await api.patch(json.url, { filters: ['b'] })).json).toEqual({ ...json, filters: ['b'] });
    expect((await api.patch(json.url, { documentatieLink: '' })).json).toEqual({
      ...json,
      documentatieLink: '',
      filters: ['b'],
    });
    expect((await api.patch(json.url, {})).status).toBe(200);
  });

  it('needs the name for PUT, and never changes it', async () => {
    const { json } = await create();
    expect(wrong(await api.put(json.url, {})).fields).toEqual(['naam required']);
    expect(wrong(await api.put(json.url, { naam: newName() })).fields).toEqual(['naam wijzigen-niet-toegelaten']);
    expect(wrong(await api.patch(json.url, { naam: newName() })).fields).toEqual(['naam wijzigen-niet-toegelaten']);
    expect((await api.patch(json.url, { naam: json.naam })).status).toBe(200);
    expect((await api.get(json.url)).json).toEqual(json);
  });

  it('is not possible for one that is not there', async () => {
    expect((await api.put(`/kanaal/${randomUUID()}`, { naam: 'x' })).json.code).toBe('not_found');
    expect((await api.patch(`/kanaal/${randomUUID()}`, {})).json.code).toBe('not_found');
  });
});

describe('the documentation of a kanaal', () => {
  it('is fetched, and must answer 200, where that is enforced', async () => {
    const [strict, docs] = await Promise.all([Api.start({ DOCUMENTATION_LINK_CHECK: 'enforce' }), Receiver.start()]);
    try {
      const attempt = async (documentatieLink: string) =>
        wrong(await strict.post('/kanaal', { naam: newName(), documentatieLink })).fields;
      docs.always(answer(200));
      expect(await attempt(docs.url)).toBeUndefined();
      expect(await attempt('')).toBeUndefined();
      for (const behaviour of [answer(204), answer(404), redirect(docs.url)]) {
        docs.always(behaviour);
        expect(await attempt(docs.url)).toEqual(['documentatieLink bad-url']);
      }
      const ofOperator = { name: newName(), documentationLink: docs.url };
      const { json } = await strict.post(`${strict.origin}/admin/v1/channels`, ofOperator);
      expect(json.invalidParams).toMatchObject([{ name: 'documentationLink', code: 'bad-url' }]);
      const { id } = (await strict.post(`${strict.origin}/admin/v1/channels`, { name: newName() })).json;
      const calls = docs.requests.length;
      // A change that is refused anyway calls nothing.
      const refused = async (changes: object, headers: Record<string, string>) => {
        const body = { documentationLink: docs.url, ...changes };
        const { status } = await strict.patch(`${strict.origin}/admin/v1/channels/${String(id)}`, body, { headers });
        return [status, docs.requests.length - calls];
      };
      expect(await refused({}, { 'if-match': '"another"' })).toEqual([412, 0]);
      expect(await refused({ deduplication: { fields: ['unknown'], withinSeconds: 5 } }, {})).toEqual([400, 0]);
      await docs.stop();
      expect(await attempt(docs.url)).toEqual(['documentatieLink bad-url']);
    } finally {
      await Promise.all([strict.close(), docs.stop()]);
    }
  });

  it('is fetched, and only logged when it is missing, where a warning is enough', async () => {
    const lenient = await Api.start({ DOCUMENTATION_LINK_CHECK: 'warn' });
    try {
      const link = 'http://does-not-exist.invalid/docs';
      expect((await lenient.post('/kanaal', { naam: newName(), documentatieLink: link })).status).toBe(201);
      expect(lenient.logged).toContainEqual(
        expect.objectContaining({ event: 'channel.documentation-unreachable', link }),
      );
    } finally {
      await lenient.close();
    }
  });
});
