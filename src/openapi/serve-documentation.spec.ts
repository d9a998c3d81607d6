import type { OpenAPIObject } from '@nestjs/swagger';
import { fastify } from 'fastify';
import { expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { serveFiles } from './serve-documentation.js';

const text = { openapi: '3.0.3', info: { title: 'An API', version: '1' }, paths: {} };

it('the texts of a document are made once, however often and from however many addresses they are asked for', async () => {
  const toJSON = vi.fn<() => object>(() => text);
  const server = fastify();
  serveFiles(
    server,
    { json: ['/a.json'], yaml: ['/a.yaml', '/b.yaml'] },
    () => ({ toJSON }) as unknown as OpenAPIObject,
  );
  const read = async (url: string) => {
    const { body, headers } = await server.inject(url);
    return { type: headers['content-type'], content: parse(body) as unknown };
  };
  for (const url of ['/a.json', '/a.json', '/b.yaml?format=json']) {
    expect(await read(url)).toEqual({ type: 'application/json; charset=utf-8', content: text });
  }
  expect(toJSON).toHaveBeenCalledTimes(1);
  for (const url of ['/a.yaml', '/a.yaml', '/b.yaml']) {
    expect(await read(url)).toEqual({ type: 'application/yaml; charset=utf-8', content: text });
  }
  expect(toJSON).toHaveBeenCalledTimes(2);
  await server.close();
});
