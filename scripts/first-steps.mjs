// The next steps after `npm start`: a link to the console, and the commands that make a notification reach the demo
// receiver.
import { join } from 'node:path';
import { compiled, projectDirectory } from './ready-to-run.mjs';

const channel = 'demo';
/** By its path: it is pasted in any directory, where npx might fetch another package of that name. */
const commandLine = join(projectDirectory, 'dist/heraut.js');

/** The application of the printed token. It may do what the three commands need, and nothing of the admin API. */
const demoApplication = {
  clientId: 'npm-start-demo',
  label: 'First steps of npm start',
  scopes: ['notificaties.publiceren', 'notificaties.consumeren'],
};
const tokenMinutes = 15;

/**
 * @param {object} server
 * @param {string} server.url
 * @param {string} server.adminUrl where the admin API is
 * @param {string} server.clientId of the superuser
 * @param {string} server.secret of the superuser; never printed, and no token signed with it either
 * @param {boolean} server.isSecretConfigured
 *   it is an operator's, in the environment: then no token is printed at all, only the command that makes one
 * @param {string} server.receiverUrl
 * @returns {Promise<string>}
 */
export async function firstSteps({ url, adminUrl, clientId, secret, isSecretConfigured, receiverUrl }) {
  const superuserToken = await makeToken(clientId, secret);
  const api = `${url}/api/v1`;
  const [hasChannel, hasSubscription] = await Promise.all([
    exists(`${api}/kanaal?naam=${channel}`, superuserToken, () => true),
    exists(`${api}/abonnement`, superuserToken, (abonnement) => abonnement.callbackUrl === receiverUrl),
  ]);
  const authorization = isSecretConfigured
    ? `-H "Authorization: Bearer $TOKEN"`
    : `-H 'Authorization: Bearer ${await demoToken(adminUrl, superuserToken)}'`;
  const post = (/** @type {string} */ resource, /** @type {object} */ body) =>
    [
      `curl -sS -X POST ${api}/${resource}`,
      authorization,
      `-H 'Content-Type: application/json'`,
      `-d '${JSON.stringify(body)}'`,
    ].join(' ');
  const steps = [
    { done: hasChannel, text: 'a channel (kanaal)', command: post('kanaal', { naam: channel }) },
    {
      done: hasSubscription,
      text: 'a subscription (abonnement) of the demo receiver',
      command: post('abonnement', { callbackUrl: receiverUrl, auth: 'Bearer demo', kanalen: [{ naam: channel }] }),
    },
    {
      done: false,
      text: 'publish; the delivery shows up here',
      command: post('notificaties', {
        kanaal: channel,
        hoofdObject: 'https://example.com/cases/1',
        resource: 'case',
        resourceUrl: 'https://example.com/cases/1',
        actie: 'create',
        aanmaakdatum: new Date().toISOString(),
        kenmerken: {},
      }),
    },
  ];
  const found = steps.filter(({ done }) => done).map(({ text }) => text);
  const left = steps.filter(({ done }) => !done);
  const hint = isSecretConfigured
    ? 'in a terminal that has SUPERUSER_SECRET (and SUPERUSER_CLIENT_ID, if you set it)'
    : `in another terminal (the token is valid for ${tokenMinutes} minutes, and is good for these commands only)`;
  const tokenCommand = `TOKEN=$(node '${commandLine}' token)`;
  return [
    ...(found.length > 0 ? [`Found from before: ${found.join(' and ')}.`] : []),
    `To see a notification arrive without the console, paste ${hint}:`,
    ...(isSecretConfigured
      ? ['', '# a superuser’s token, made from the secret; it goes into a variable, not to the screen', tokenCommand]
      : []),
    ...left.flatMap(({ text, command }, index) => ['', `# ${index + 1}. ${text}`, command]),
  ].join('\n');
}

/**
 * The way into the console: on the embedded default one click, as its secret is known to nobody yet.
 * @param {object} server
 * @param {string} server.adminUrl
 * @param {string} server.clientId of the superuser
 * @param {string} server.secret
 * @param {boolean} server.isSecretConfigured then no link that signs in is printed: what is printed may be kept as a
 *   log
 * @param {NodeJS.ProcessEnv} server.env that it was started with
 * @returns {Promise<string>}
 */
export async function wayIntoConsole({ adminUrl, clientId, secret, isSecretConfigured, env }) {
  const command = [
    ...(adminUrl === 'http://127.0.0.1:8000' ? [] : [`HERAUT_URL=${adminUrl}`]),
    ...(env.DATA_DIR && !isSecretConfigured ? [`DATA_DIR='${env.DATA_DIR.replaceAll("'", `'\\''`)}'`] : []),
    // Elsewhere than in this directory npx would fetch a package of that name, and run it with the secret.
    isSecretConfigured ? `node '${commandLine}' console` : 'npx heraut console',
  ].join(' ');
  if (isSecretConfigured)
    return `The console: ${adminUrl}/console/\nTo be signed in by a link, in a terminal that has SUPERUSER_SECRET: ${command}`;
  const response = await fetch(`${adminUrl}/admin/v1/sign-in-tickets`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await makeToken(clientId, secret)}` },
  });
  /** @type {{ url: string, expiresAt: string }} */
  const { url, expiresAt } = await jsonOf(response);
  const minutes = Math.max(1, Math.round((Date.parse(expiresAt) - Date.now()) / 60_000));
  return [
    `Open the console: this link signs you in, once, within ${minutes} minutes.`,
    '',
    `  ${url}`,
    '',
    `For a new one, in this directory: ${command}`,
  ].join('\n');
}

/**
 * A token of the demo application, which gets a new secret for it.
 * @param {string} url
 * @param {string} superuserToken
 */
async function demoToken(url, superuserToken) {
  const call = (/** @type {string} */ path, /** @type {RequestInit} */ request = {}) =>
    fetch(`${url}/admin/v1/applications${path}`, {
      ...request,
      headers: { authorization: `Bearer ${superuserToken}`, 'content-type': 'application/json' },
    });
  /** @type {{ applications: { id: string, clientId: string }[] }} */
  const { applications } = await jsonOf(await call(''));
  const known = applications.find(({ clientId }) => clientId === demoApplication.clientId);
  const made = known
    ? await call(`/${known.id}/rotate-secret`, { method: 'POST' })
    : await call('', { method: 'POST', body: JSON.stringify(demoApplication) });
  /** @type {{ clientId: string, secret: string }} */
  const { clientId, secret } = await jsonOf(made);
  return makeToken(clientId, secret, tokenMinutes * 60);
}

/**
 * As the command line makes them.
 * @param {string} clientId
 * @param {string} secret
 * @param {number} [validSeconds]
 * @returns {Promise<string>}
 */
async function makeToken(clientId, secret, validSeconds) {
  const module = await compiled('command-line/make-token.js');
  return module.makeToken(clientId, secret, Date.now(), validSeconds);
}

/**
 * @param {string} listUrl
 * @param {string} token
 * @param {(item: { callbackUrl?: string }) => boolean} isIt
 * @returns {Promise<boolean>}
 */
async function exists(listUrl, token, isIt) {
  const response = await fetch(listUrl, { headers: { authorization: `Bearer ${token}` } });
  /** @type {{ callbackUrl?: string }[]} */
  const items = await jsonOf(response);
  return items.some(isIt);
}

/**
 * @template T
 * @param {Response} response
 * @returns {Promise<T>}
 */
async function jsonOf(response) {
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${await response.text()}`);
  return /** @type {Promise<T>} */ (response.json());
}
