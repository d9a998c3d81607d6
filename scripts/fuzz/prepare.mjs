import { once } from 'node:events';
import { createServer } from 'node:http';
import { badTokens, signed } from './tokens.mjs';

/**
 * Gives a server what its operations can be about, so that more than their refusals is seen: a receiver, too.
 * @param {number} port
 * @param {{ clientId: string, secret: string }} superuser
 * @param {import('./accounts.mjs').Sql} sql of its database
 * @returns {Promise<import('./server-side.mjs').Target & { stop: () => Promise<void> }>}
 */
export async function prepareTarget(port, superuser, sql) {
  const token = signed(superuser);
  const post = async (/** @type {string} */ path, /** @type {object} */ body) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const url = `http://127.0.0.1:${port}${path}`;
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`POST ${path} answered ${response.status}: ${await response.text()}`);
  };
  const applications = ['publiceren', 'consumeren'].map((verb) => ({
    clientId: `fuzz-${verb}`,
    secret: `the secret of the one that may ${verb}`,
    scopes: [`notificaties.${verb}`],
  }));
  for (const each of applications) await post('/admin/v1/applications', { ...each, label: each.clientId });
  const receiver = createServer(
    (request, response) => void request.resume().on('end', () => response.writeHead(204).end()),
  );
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const receiverUrl = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (receiver.address()).port}/`;
  const naam = 'fuzz';
  await post('/api/v1/kanaal', { naam, filters: ['kind'] });
  const kanalen = [{ naam, filters: {} }];
  await post('/api/v1/abonnement', { callbackUrl: receiverUrl, auth: 'Bearer fuzz', kanalen });
  for (let nr = 0; nr < 30; nr++)
    await sql('INSERT INTO endpoint (address, reason, failures, next_probe_at) VALUES ($1, $2, 5, now())', [
      `https://receiver-${nr}.invalid`,
      'HTTP 503',
    ]);
  const stop = async () => {
    receiver.closeAllConnections();
    receiver.close();
    await once(receiver, 'close');
  };
  const good = [token, ...applications.map((each) => signed(each))];
  return { port, sql, receiverUrl, stop, tokens: { good, bad: badTokens(superuser) } };
}
