import { expect } from 'vitest';
import { runInNewContext } from 'node:vm';
import type { Api } from './api.js';

/**
 * Checks that a page of Swagger UI, as a browser would get it, shows `document`: every file it names comes from this
 * server, and the script that starts it hands exactly this document, with its operations and schemas, to the program
 * that shows it.
 * @param url with or without a slash at its end
 */
export async function expectSwaggerPage(api: Api, url: string, document: object): Promise<void> {
  const get = (address: string) => api.get(address, { token: null });
  const { status, headers, text } = await get(url);
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html']);

  const files = [...text.matchAll(/(?:src|href)=["']([^"']+)["']/g)].map(([, file]) => new URL(file!, url).href);
  for (const file of files) {
    expect(file).toContain(api.origin);
    expect([file, (await get(file)).status]).toEqual([file, 200]);
  }
  expect(files.filter((file) => /\.(css|js)$/.test(file)).length).toBeGreaterThan(3);

  const script = await get(files.find((file) => file.endsWith('/swagger-ui-init.js')) ?? '');
  expect(shownBy(script.text)).toMatchObject({ spec: document, validatorUrl: 'none' });
}

/** The options that the script gives to Swagger UI when the page is loaded. */
function shownBy(script: string): unknown {
  let shown: unknown;
  const SwaggerUIBundle = Object.assign((options: object) => ((shown = options), { initOAuth: () => {} }), {
    presets: { apis: {} },
    plugins: { DownloadUrl: {} },
  });
  const window: { onload?: () => void; location: object } = { location: { search: '', origin: '' } };
  runInNewContext(script, { window, SwaggerUIBundle, SwaggerUIStandalonePreset: {} });
  window.onload?.();
  // From another context: its objects are no objects of this one.
  return JSON.parse(JSON.stringify(shown));
}
