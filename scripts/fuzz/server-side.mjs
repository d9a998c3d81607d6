import { Random } from '../random.mjs';
import { Accounts } from './accounts.mjs';
import { Connection, NoAnswer } from './connection.mjs';
import { judge, read, wrongProblem } from './judge.mjs';
import { operationsOf } from './operations.mjs';
import { closesAfter, fuzzedRequest } from './requests.mjs';
import { Seen } from './seen.mjs';
import { smugglingRequest } from './smuggling.mjs';

/**
 * @typedef {object} Finding
 * @property {number} nr of the request; with the seed it leads to it again
 * @property {string} what
 * @property {string} request
 * @property {string} answer
 *
 * @typedef {object} Target
 * @property {number} port
 * @property {import('./requests.mjs').Tokens} tokens
 * @property {import('./accounts.mjs').Sql} sql of its database
 * @property {string} receiverUrl where callbacks are answered
 *
 * @typedef {object} Result
 * @property {number} requests
 * @property {Finding[]} findings
 * @property {Map<string, Map<number, number>>} answers operation → status → how many
 */

/** Requests between two comparisons of what was answered with what is stored. */
const together = 250;
const connections = 4;
/** One request in so many is no request, or two. */
const smugglingEvery = 25;

/**
 * Sends requests that are made of the documents of the server, and says which answers are wrong.
 * @param {Target} target
 * @param {object} options
 * @param {number} options.requests
 * @param {number} options.seed
 * @param {number} [options.patienceMs] a server that takes longer to answer hangs
 * @param {(sent: number, findings: readonly Finding[]) => void} [options.onProgress]
 * @returns {Promise<Result>}
 */
export async function fuzzServer(
  { port, tokens, sql, receiverUrl },
  { requests, seed, patienceMs = 60_000, onProgress = () => {} },
) {
  const host = `127.0.0.1:${port}`;
  const operations = [
    // A stream has no end to wait for.
    ...operationsOf(await documentAt(`http://${host}/docs/openapi.json`), '').filter(({ id }) => id !== 'event_stream'),
    ...operationsOf(await documentAt(`http://${host}/api/v1/openapi.json`), '/api/v1'),
  ];
  const around = { operations, seen: new Seen(), host, tokens };
  around.seen.learn('', { uri: receiverUrl }, new Random(seed, 'before'));
  /** @type {Result} */
  const result = { requests: 0, findings: [], answers: new Map() };
  const accounts = new Accounts(sql);
  const lines = Array.from({ length: connections }, () => new Connection(port, patienceMs));
  await accounts.open();
  for (let first = 0; first < requests; first += together) {
    const last = Math.min(first + together, requests);
    /** @type {import('./accounts.mjs').Outcome[]} */
    const outcomes = [];
    // Each connection has its own share, made in its own order: what it sends depends on nothing but the seed and what
    // was seen.
    await Promise.all(
      lines.map(async (line, share) => {
        for (let nr = first + share; nr < last; nr += connections) outcomes.push(...(await sendOne(nr, line)));
      }),
    );
    result.requests = last;
    for (const what of await accounts.compare(outcomes))
      result.findings.push({
        nr: first,
        what: `after requests ${first} to ${last - 1}: ${what}`,
        request: '',
        answer: '',
      });
    onProgress(last, result.findings);
  }
  for (const line of lines) line.close();
  return result;

  /**
   * @param {number} nr
   * @param {Connection} line
   * @returns {Promise<import('./accounts.mjs').Outcome[]>}
   */
  async function sendOne(nr, line) {
    const random = new Random(seed, String(nr));
    return nr % smugglingEvery === smugglingEvery - 1 ? smuggle(nr, random, line) : ask(nr, random, line);
  }

  /**
   * @param {number} nr
   * @param {Random} random
   * @param {Connection} line
   */
  async function ask(nr, random, line) {
    const request = fuzzedRequest(nr, random, around);
    const { operation, method, bytes, requestId } = request;
    const outcome = { nr, requestId, isDone: false, notificationId: undefined };
    try {
      const answer = await line.ask(bytes, method);
      if (closesAfter(request)) line.close();
      count(operation.id, answer.status);
      const what = judge(request, answer);
      if (what) found(nr, `${operation.id} (${request.twists.join(', ')}): ${what}`, bytes, answer);
      if (answer.status < 300) around.seen.learn(operation.path, read(answer).body, random);
      return [
        {
          ...outcome,
          requestId: answer.headers.get('x-request-id') ?? requestId,
          isDone: answer.status < 300,
          notificationId: answer.headers.get('notification-id'),
        },
      ];
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      found(nr, `${operation.id} (${request.twists.join(', ')}): ${error.message}`, bytes, undefined);
      return [outcome];
    }
  }

  /**
   * @param {number} nr
   * @param {Random} random
   * @param {Connection} line
   */
  async function smuggle(nr, random, line) {
    const { name, bytes } = smugglingRequest(nr, random, { host, token: tokens.good[0] ?? '' });
    try {
      const answers = await line.askAll(bytes);
      for (const answer of answers) {
        count('smuggling', answer.status);
        const { status } = answer;
        const what =
          status < 400
            ? `answered ${status}`
            : status >= 500
              ? `answered ${status}`
              : wrongProblem(status, read(answer));
        if (what) found(nr, `${name}: ${what}`, bytes, answer);
      }
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      found(nr, `${name}: ${error.message}`, bytes, undefined);
    }
    return [];
  }

  /**
   * @param {string} id
   * @param {number} status
   */
  function count(id, status) {
    const byStatus = result.answers.get(id) ?? new Map();
    result.answers.set(id, byStatus.set(status, (byStatus.get(status) ?? 0) + 1));
  }

  /**
   * @param {number} nr
   * @param {string} what
   * @param {Buffer} request
   * @param {import('./connection.mjs').Answer | undefined} answer
   */
  function found(nr, what, request, answer) {
    result.findings.push({
      nr,
      what,
      request: request
        .toString('latin1')
        .replace(/Bearer \S{40,}/g, 'Bearer …')
        .slice(0, 1500),
      answer: answer ? `${answer.status} ${answer.body.toString('utf8', 0, 1000)}` : '',
    });
  }
}

/** @param {string} url */
async function documentAt(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.json();
}
