// Calls every form of an address that may not be used, in every way that Heraut calls what strangers name, and counts
// the connections that are made.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { watchConnects } from './connects.mjs';
import { forms, proxyAddress, receiverAddress } from './forms.mjs';
import { startNameServer } from './name-server.mjs';

/**
 * The program's own classes, wherever they come from.
 * @typedef {object} Program
 * @property {typeof import('../../src/config/settings.js').readSettings} readSettings
 * @property {typeof import('../../src/outbound/outbound.service.js').Outbound} Outbound
 * @property {typeof import('../../src/delivery/webhook-client.http.js').HttpWebhookClient} HttpWebhookClient
 * @property {typeof import('../../src/subscriptions/callback-proof.service.js').CallbackProof} CallbackProof
 * @property {typeof import('../../src/credentials/authorizations.service.js').Authorizations} Authorizations
 * @property {typeof import('../../src/credentials/credentials.js').verbatim} verbatim
 * @property {typeof import('../../src/infra/clock.js').systemClock} systemClock
 * @property {typeof import('../../src/channels/documentation-link.service.js').DocumentationLinkCheck} DocumentationLinkCheck
 */

export const ways = /** @type {const} */ ([
  'delivery',
  'delivery on its own connection',
  'proof',
  'documentation link',
  'token endpoint',
  'delivery through a proxy',
]);
/** @typedef {typeof ways[number]} Way */

/**
 * @typedef {object} Row
 * @property {string} kind
 * @property {string} form
 * @property {Record<Way, Count>} counts
 *
 * @typedef {object} Count connections, and CONNECTs that the proxy was asked for
 * @property {number} refused to addresses that may not be used, or not in this way
 * @property {number} allowed to the receiver
 */

/** As `URL` writes it. */
const receiverMapped = new URL(`http://[::ffff:${receiverAddress}]`).hostname.slice(1, -1);

/** So often is a name called: it may lead elsewhere the next time. */
const timesOfName = 4;

/**
 * @param {Program} program
 * @returns {Promise<{ rows: Row[], control: Row }>} `control` is of the receiver, which may be called: it shows that
 *   what is counted is there to be counted
 */
export async function examine(program) {
  const names = await startNameServer();
  const receiver = createServer(({ url }, answer) => {
    const elsewhere = `http://127.0.0.1:${portOf(receiver)}/`;
    if (url === '/redirect') answer.writeHead(307, { location: elsewhere }).end();
    else answer.writeHead(204).end();
  });
  const proxy = createServer();
  /** @type {Count} */
  let count = { refused: 0, allowed: 0 };
  const note = (/** @type {string} */ address) => {
    if (address === receiverAddress || address === receiverMapped) count.allowed++;
    else if (address !== proxyAddress) count.refused++;
  };
  proxy.on('connect', (_, socket) => {
    count.refused++; // the receiver is of this machine too: nothing here is called through the proxy
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  await listen(receiver, receiverAddress);
  await listen(proxy, proxyAddress);
  // It listens at the refused address too, so that a connection there would succeed.
  const forbidden = createServer((_, answer) => answer.end());
  forbidden.listen(portOf(receiver), '127.0.0.1');
  await once(forbidden, 'listening');
  const unwatch = watchConnects(note);

  /** @type {(form: import('./forms.mjs').Form, path?: string) => Promise<Row>} */
  const rowOf = async ({ kind, host, shown, answers, networks }, path = '/') => {
    /** @type {Partial<Record<Way, Count>>} */
    const counts = {};
    const url = `http://${host}:${portOf(receiver)}${path}`;
    for (const way of ways) {
      let look = 0;
      // Both families are asked for at each look-up.
      if (answers) names.names.set(host, () => answers[(look++ >> 1) % answers.length] ?? []);
      count = { refused: 0, allowed: 0 };
      for (let time = 0; time < (answers ? timesOfName : 1); time++) await call(way, url, networks);
      counts[way] = count;
    }
    return { kind, form: shown ?? host, counts: /** @type {Record<Way, Count>} */ (counts) };
  };

  /** @type {(networks: string, proxyUrl: string) => { settings: import('../../src/config/settings.js').Settings, outbound: InstanceType<Program['Outbound']> }} */
  const wayOut = (networks, proxyUrl) => {
    const settings = program.readSettings({
      CALLBACK_NETWORKS: networks,
      CALLBACK_ALLOWED_NETWORKS: receiverAddress,
      DOCUMENTATION_LINK_CHECK: 'enforce',
      EGRESS_PROXY_URL: proxyUrl,
    });
    return { settings, outbound: new program.Outbound(settings, names.lookUp) };
  };
  const proxyUrl = `http://${proxyAddress}:${portOf(proxy)}`;
  const waysOut = {
    public: { direct: wayOut('public', ''), proxied: wayOut('public', proxyUrl) },
    any: { direct: wayOut('any', ''), proxied: wayOut('any', proxyUrl) },
  };

  /** @type {(way: Way, url: string, networks?: 'any') => Promise<void>} */
  const call = async (way, url, networks) => {
    const { direct, proxied } = waysOut[networks ?? 'public'];
    const { settings, outbound } = way === 'delivery through a proxy' ? proxied : direct;
    const { verbatim: credentials } = program;
    const ledgerClock = /** @type {import('../../src/liveness/ledger-clock.service.js').LedgerClock} */ ({
      now: Date.now,
    });
    const authorizations = new program.Authorizations(outbound, program.systemClock, ledgerClock);
    if (way === 'proof') {
      const proof = new program.CallbackProof({ settings }, outbound, authorizations, ledgerClock);
      const asked = { callbackUrl: url, auth: 'Bearer x', credentials, isUrlNew: true, signingKeys: [] };
      return unlessInvalid(proof.prove(asked));
    }
    if (way === 'token endpoint') return void (await authorizations.of({ auth: '', credentials: tokenOf(url) }));
    if (way === 'documentation link') {
      const check = new program.DocumentationLinkCheck({ settings }, outbound);
      return unlessInvalid(check.check(url, 'documentationLink', { clientId: 'anybody' }));
    }
    const client = new program.HttpWebhookClient(outbound);
    const mayRepeat = way !== 'delivery on its own connection';
    await client.post({ url, headers: {}, body: Buffer.from('{}'), timeoutMs: 1000, mayRepeat });
    await client.close();
  };

  try {
    const rows = [];
    for (const form of forms) rows.push(await rowOf(form));
    const redirecting = { kind: 'redirect', host: receiverAddress, shown: '307 to 127.0.0.1' };
    rows.push(await rowOf(redirecting, '/redirect'));
    const control = await rowOf({ kind: 'control', host: receiverAddress, shown: 'an allowed address' });
    return { rows, control };
  } finally {
    unwatch();
    for (const server of [receiver, proxy, forbidden]) server.close().closeAllConnections();
    await names.stop();
  }
}

/** @type {(tokenUrl: string) => import('../../src/credentials/credentials.js').OAuth2Authorization} */
const tokenOf = (tokenUrl) => ({
  kind: 'oauth2',
  tokenUrl,
  clientId: 'x',
  clientSecret: 'x',
  scope: null,
  clientAuthentication: 'basic',
  tokenTls: null,
});

/** @type {(check: Promise<void>) => Promise<void>} */
async function unlessInvalid(check) {
  try {
    await check;
  } catch (error) {
    // Refused, or not as it should be by the receiver, which answers 204 to everybody.
    if (/** @type {{ status?: number }} */ (error).status !== 400) throw error;
  }
}

/** @type {(server: import('node:http').Server, host: string) => Promise<void>} */
async function listen(server, host) {
  server.listen(0, host);
  await once(server, 'listening');
}

/** @param {import('node:http').Server} server */
const portOf = (server) => /** @type {import('node:net').AddressInfo} */ (server.address()).port;
