// HTTP/1.1 by hand on a socket: receivers that share the machine with what they measure have to be cheap.

/**
 * One call, read to its end.
 * @typedef {object} Call
 * @property {string} head request line and headers, in lower case
 * @property {boolean} isAuthorized
 * @property {string | undefined} id its webhook-id; the calls that prove a callback before it is registered carry none
 * @property {Buffer} input holds the body
 * @property {number} end of the body
 * @property {number} bodyBytes
 */

export const accepted = 'HTTP/1.1 204 No Content\r\n\r\n';
export const refused = 'HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n';
export const failed = 'HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n';
const endOfHead = Buffer.from('\r\n\r\n');

/**
 * Answers every call of a connection.
 * @param {import('node:net').Socket} socket
 * @param {(call: Call) => string} answerTo gives the whole answer, or '' when it is given later, or never
 */
export function serve(socket, answerTo) {
  /** @type {Buffer | undefined} */
  let rest;
  socket.on('error', () => socket.destroy()); // the other side went away
  socket.on('data', (chunk) => {
    const input = rest ? Buffer.concat([rest, chunk]) : chunk;
    let answers = '';
    let at = 0;
    while (at < input.length) {
      const headEnd = input.indexOf(endOfHead, at);
      if (headEnd < 0) break;
      // Header names have no case (RFC 9110 §5.1), and no value that is read here has either.
      const head = input.toString('latin1', at, headEnd + 2).toLowerCase();
      const bodyBytes = Number(valueOf(head, 'content-length') ?? 0);
      const end = headEnd + endOfHead.length + bodyBytes;
      if (end > input.length) break;
      const isAuthorized = valueOf(head, 'authorization') !== undefined;
      answers += answerTo({ head, isAuthorized, id: valueOf(head, 'webhook-id'), input, end, bodyBytes });
      at = end;
    }
    rest = at === input.length ? undefined : input.subarray(at);
    if (answers !== '' && !socket.destroyed) socket.write(answers, 'latin1');
  });
}

/**
 * The path is the number of the subscription.
 * @param {Call} call
 */
export function subscriptionOf({ head }) {
  return Number(head.slice('post /'.length, head.indexOf(' ', 'post /'.length)));
}

/**
 * @param {string} head
 * @param {string} name
 * @returns {string | undefined}
 */
function valueOf(head, name) {
  const at = head.indexOf(`\r\n${name}:`);
  if (at < 0) return undefined;
  const from = at + name.length + 3;
  return head.slice(from, head.indexOf('\r\n', from)).trim();
}
