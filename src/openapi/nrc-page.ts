import type { nrcDocument } from './nrc-document.js';
import type { Operation, PathItem } from './nrc-operation.js';

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`).replace(/`([^`]+)`/g, '<code>$1</code>');

/** The document as one page that needs nothing from anywhere else. */
export function renderPage({ info, paths, components }: typeof nrcDocument): string {
  const operations = Object.entries(paths).flatMap(([path, item]) => operationsOf(path, item));
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) =>
      `<h3 id="${name}">${name}</h3><pre>${escapeHtml(JSON.stringify(schema, undefined, 2)).replace(
        /#\/components\/schemas\/(\w+)/g,
        '<a href="#$1">$1</a>',
      )}</pre>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${info.title} ${info.version}</title>
<style>body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}pre{background:#f4f4f4;padding:1rem;overflow:auto}</style>
</head>
<body>
<h1>${info.title} ${info.version}</h1>
<p>${escapeHtml(info.description).replaceAll('\n\n', '</p><p>')}</p>
<p>For programs: <a href="/api/v1/openapi.yaml">openapi.yaml</a>, <a href="/api/v1/openapi.json">openapi.json</a>.</p>
${operations.join('\n')}
<h2>Schemas</h2>
${schemas.join('\n')}
</body>
</html>
`;
}

const methods = ['get', 'post', 'put', 'patch', 'delete'] as const;

function operationsOf(path: string, item: PathItem): string[] {
  return methods.flatMap((method) => {
    const operation = item[method];
    return operation ? [operationSection(method, path, operation)] : [];
  });
}

function operationSection(method: string, path: string, operation: Operation): string {
  const responses = Object.entries(operation.responses).map(
    ([status, response]) => `<li>${status}: ${escapeHtml(String(response.description))}</li>`,
  );
  return `<h2>${operation.summary}</h2>
<p><code>${method.toUpperCase()} /api/v1${path}</code> (${operation.operationId})</p>
<p>${escapeHtml(operation.description)}</p>
<ul>${responses.join('')}</ul>`;
}
