// A webhook to look at: it shows every delivery it gets. `npm run receiver [port]`, and part of the embedded `npm
// start`.
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { readCommandLine, refuse } from './command-line.mjs';

/**
 * 401 without `Authorization`, 204 with: so it can be registered as a callback.
 * @param {number} firstPort the next free one from here is used
 * @param {(line: string) => void} show
 * @returns {Promise<{ url: string, close: () => void }>}
 */
export async function startReceiver(firstPort, show) {
  const server = createServer((request, response) => {
    /** @type {Buffer[]} */
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      response.writeHead(request.headers.authorization ? 204 : 401).end();
      const { 'webhook-id': id, 'webhook-attempt': attempt } = request.headers;
      // The calls that prove a callback before it is registered carry no id.
      if (id === undefined) return;
      const body = Buffer.concat(chunks).toString('utf8');
      show(`received   webhook-id: ${String(id)}   webhook-attempt: ${String(attempt)}\n  ${body}`);
    });
  });
  for (let port = firstPort; ; port += 1) {
    if (await listens(server, port)) {
      const close = () => {
        server.close();
        server.closeAllConnections();
      };
      return { url: `http://127.0.0.1:${port}/webhook`, close };
    }
  }
}

/**
 * @param {import('node:http').Server} server
 * @param {number} port
 * @returns {Promise<boolean>} false if another process has the port
 */
function listens(server, port) {
  return new Promise((resolve, reject) => {
    /** @param {NodeJS.ErrnoException} error */
    const fail = (error) => (error.code === 'EADDRINUSE' ? resolve(false) : reject(error));
    server.once('error', fail);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', fail);
      resolve(true);
    });
  });
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const usage =
    'Usage: npm run receiver [port]\nShows every delivery it gets, at this port or the next free one (8001).';
  const { positionals } = readCommandLine(usage, () => {
    const { values, positionals } = parseArgs({ options: { help: { type: 'boolean' } }, allowPositionals: true });
    return { values: { ...values, positionals } };
  });
  const port = Number(positionals[0] ?? 8001);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    refuse(usage, 'The port is a whole number from 1 to 65535.');
  const { url } = await startReceiver(port, console.log);
  console.log(`Receiver at ${url}: 401 without Authorization, 204 with. Ctrl-C ends it.`);
}
