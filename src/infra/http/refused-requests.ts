import type { FastifyRequest } from 'fastify';
import type { IncomingMessage } from 'node:http';
import { mayNameHost } from './origin.js';
import {
  ExpectationProblem,
  HeadersTooLargeProblem,
  MisdirectedProblem,
  ParseProblem,
  type ProblemError,
} from './problem.js';

/**
 * Node keeps a thousand and silently leaves out the rest, a token among them; no client of ours sends more than twenty.
 */
const mostHeaders = 100;

/** The rule that the head of a request breaks, whatever it is for. */
export function refusalOf(request: FastifyRequest): ProblemError | undefined {
  return brokenHeader(request) ?? misdirected(request);
}

/** Node's own pattern for the one expectation that it meets. */
const continueExpected = /(?:^|\W)100-continue(?:$|\W)/i;

/**
 * The rule of HTTP/1.1 that the headers break. Node would answer these requests itself, with an empty body, or not at
 * all.
 */
function brokenHeader({ headers, raw }: FastifyRequest): ProblemError | undefined {
  if (raw.rawHeaders.length > 2 * mostHeaders) return new HeadersTooLargeProblem();
  if (raw.httpVersion !== '1.1') return undefined; // HTTP/1.0 has neither header
  // RFC 9112 §3.2.
  if (headers.host === undefined) return new ParseProblem('The request has no Host.');
  if (hasSecondHost(raw)) return new ParseProblem('The request has more than one Host.');
  // RFC 9110 §10.1.1.
  const isMet = headers.expect === undefined || continueExpected.test(headers.expect);
  return isMet ? undefined : new ExpectationProblem();
}

/** Node takes the first one. A proxy in front that takes the last would have checked another. */
function hasSecondHost({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++;
  }
  return hosts > 1;
}

/** Paths that monitoring asks for by the address of a process. Their answers name no host. */
const isForMonitoring = (url: string): boolean => url.startsWith('/health/') || url === '/metrics';

/** Whether the request is for a host that is not ours (ALLOWED_HOSTS). */
function misdirected(request: FastifyRequest): ProblemError | undefined {
  return mayNameHost(request) || isForMonitoring(request.url) ? undefined : new MisdirectedProblem();
}
