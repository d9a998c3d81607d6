import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ProblemFilter } from './problem.filter.js';
import { HeadersTooLargeProblem, ParseProblem, RequestTimeoutProblem, type ProblemError } from './problem.js';
import { securityHeaders } from './security-headers.js';

/**
 * For bytes that are not HTTP and for requests that take too long: there is no request object, or none that could be
 * answered.
 * @param takenWithinMs then the connection is cut
 */
export function answerBroken(
  error: Error & { code?: string },
  socket: Socket,
  problems: ProblemFilter,
  takenWithinMs: number,
): void {
  if (!socket.writable) return socket.destroySoon(); // an answer may be on its way
  const origin = `http://${socket.localAddress ?? 'localhost'}:${socket.localPort ?? 80}`;
  const problem = problemOf(error);
  socket.end(asText(problem, problems.write(problem, origin, {})));
  // Without this, a caller that ignores the end would keep its half of the connection open for ever.
  const cut = setTimeout(() => socket.destroy(), takenWithinMs).unref();
  socket.once('close', () => clearTimeout(cut));
}

function problemOf({ code }: Error & { code?: string }): ProblemError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new HeadersTooLargeProblem();
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new RequestTimeoutProblem();
    default:
      return new ParseProblem('The request is not HTTP.');
  }
}

function asText({ status }: ProblemError, body: string): string {
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    'Cache-Control: no-store',
    ...securityHeaders.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${securityHeaders[index + 1]}`] : [])),
    '',
    body,
  ].join('\r\n');
}
