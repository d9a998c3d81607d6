// What a newcomer can paste after `npm start`: the commands that make a notification reach the demo receiver.
import { createHmac } from 'node:crypto';

const channel = 'demo';

/**
 * @param {object} server
 * @param {string} server.url
 * @param {string} server.clientId
 * @param {string} server.secret
 * @param {string} server.receiverUrl
 * @returns {Promise<string>}
 */
export async function firstSteps({ url, clientId, secret, receiverUrl }) {
  const token = makeToken(clientId, secret);
  const api = `${url}/api/v1`;
  const [hasChannel, hasSubscription] = await Promise.all([
    exists(`${api}/kanaal?naam=${channel}`, token, () => true),
    exists(`${api}/abonnement`, token, (abonnement) => abonnement.callbackUrl === receiverUrl),
  ]);
  const post = (/** @type {string} */ resource, /** @type {object} */ body) =>
    [
      `curl -sS -X POST ${api}/${resource}`,
      `-H 'Authorization: Bearer ${token}'`,
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
  return [
    ...(found.length > 0 ? [`Found from before: ${found.join(' and ')}.`] : []),
    `To see a notification arrive, paste in another terminal (the token is valid for an hour):`,
    ...left.flatMap(({ text, command }, index) => ['', `# ${index + 1}. ${text}`, command]),
  ].join('\n');
}

/**
 * A token as clients of the Notificaties API make them, valid for an hour.
 * @param {string} clientId
 * @param {string} secret
 */
export function makeToken(clientId, secret) {
  const encode = (/** @type {object} */ part) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const claims = {
    iss: clientId,
    client_id: clientId,
    iat: Math.floor(Date.now() / 1000),
    user_id: '',
    user_representation: '',
  };
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

/**
 * @param {string} listUrl
 * @param {string} token
 * @param {(item: { callbackUrl?: string }) => boolean} isIt
 * @returns {Promise<boolean>}
 */
async function exists(listUrl, token, isIt) {
  const response = await fetch(listUrl, { headers: { authorization: `Bearer ${token}` } });
  if (!response.ok) throw new Error(`GET ${listUrl} answered ${response.status}: ${await response.text()}`);
  return /** @type {{ callbackUrl?: string }[]} */ (await response.json()).some(isIt);
}
