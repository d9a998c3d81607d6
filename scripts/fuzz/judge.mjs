/** @typedef {import('./connection.mjs').Answer} Answer */
/** @typedef {import('./requests.mjs').FuzzedRequest} FuzzedRequest */

/**
 * The content of an answer.
 * @param {Answer} answer
 * @returns {{ mediaType: string | undefined, body: any, isBroken: boolean }} body: undefined, there is none; isBroken:
 *   it is announced as JSON, and is none
 */
export function read({ headers, body }) {
  const mediaType = headers.get('content-type')?.split(';', 1)[0]?.trim();
  const text = body.toString();
  if (text === '') return { mediaType, body: undefined, isBroken: false };
  if (!/[/+]json$/.test(mediaType ?? '')) return { mediaType, body: text, isBroken: false };
  try {
    return { mediaType, body: JSON.parse(text), isBroken: false };
  } catch {
    return { mediaType, body: text, isBroken: true };
  }
}

/**
 * @param {FuzzedRequest} request
 * @param {Answer} answer
 * @returns {string | undefined} its fault
 */
export function judge({ operation, method, mayAlso }, answer) {
  const { status } = answer;
  if (status >= 500 && !(status === 503 && operation.statuses.includes('503'))) return `answered ${status}`;
  const seen = read(answer);
  if (seen.isBroken) return `answered ${status} with a body that is not JSON`;
  if (status >= 400 && method !== 'HEAD') {
    const wrong = operation.path === '/health/ready' && status === 503 ? undefined : wrongProblem(status, seen);
    if (wrong) return `answered ${status}: ${wrong}`;
  }
  if (method !== operation.method || !operation.statuses.includes(String(status)))
    return mayAlso.includes(status) ? undefined : `answered ${status}, which the document does not have`;
  const mismatch = operation.mismatch(status, seen.mediaType, seen.body);
  // An answer at another path is another operation's.
  return mismatch && !mayAlso.includes(status) ? `answered ${status} other than documented: ${mismatch}` : undefined;
}

/**
 * @param {number} status
 * @param {{ mediaType: string | undefined, body: any }} seen
 */
export function wrongProblem(status, { mediaType, body }) {
  if (mediaType !== 'application/problem+json') return `no problem but ${mediaType}`;
  if (body?.status !== status) return `the problem says ${body?.status}`;
  const missing = ['type', 'code', 'title', 'detail', 'instance'].filter((name) => typeof body[name] !== 'string');
  return missing.length > 0 ? `the problem has no ${missing.join(', ')}` : undefined;
}
