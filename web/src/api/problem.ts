/** A field that the API refuses; `name` is its path in the request. */
export interface InvalidParam {
  name: string;
  code: string;
  reason: string;
}

/** An error of the API as it writes them (RFC 9457), or made of the status where a proxy answered in its place. */
export interface Problem {
  status: number;
  code: string;
  title: string;
  detail: string;
  instance?: string;
  invalidParams: InvalidParam[];
  /** Seconds, where the answer says when to try again. */
  retryAfterSeconds?: number;
}

export class ApiProblem extends Error {
  constructor(
    readonly problem: Problem,
    /** The body of the answer. */
    readonly body?: unknown,
  ) {
    super(`${problem.status} ${problem.code}: ${problem.detail}`);
  }

  get status(): number {
    return this.problem.status;
  }

  get code(): string {
    return this.problem.code;
  }
}

/** Nothing answered: Heraut is down or starting, or the network is. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super('Nothing answers', { cause });
  }
}

export const isProblem = (error: unknown, code?: string): error is ApiProblem =>
  error instanceof ApiProblem && (code === undefined || error.code === code);

/** Of an answer that is no problem of the API: the error page of a proxy, for example. */
const codeOfStatus = (status: number): string => `http-${status}`;

/**
 * Whether Heraut did not answer, as far as is known, but at most a proxy in its place: what was asked for may be done.
 */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof Unreachable ||
  (error instanceof ApiProblem &&
    ([502, 504].includes(error.status) || (error.status === 503 && error.code === codeOfStatus(503))));

/**
 * Whether Heraut answered that it cannot do this now: it may in a moment, or never, as where a statement takes too long
 * each time.
 */
export const isRefusedForNow = (error: unknown): boolean =>
  error instanceof ApiProblem && [429, 503].includes(error.status) && !isUnanswered(error);

/** Whether what was asked for may be done, or be under way: nothing says that it is not. */
export const mayBeDone = (error: unknown): boolean =>
  !(error instanceof ApiProblem) || error.status >= 500 || error.code === 'idempotency-key-in-flight';

/** Whether the same request may succeed later: Heraut itself is at fault, or has too much to do. */
export const mayPass = (error: unknown): boolean =>
  error instanceof ApiProblem && (error.status >= 500 || error.status === 429);

export function readProblem(response: Response, body: unknown): ApiProblem {
  const given = (typeof body === 'object' && body !== null ? body : {}) as Partial<Problem>;
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new ApiProblem(
    {
      status: response.status,
      code: given.code ?? codeOfStatus(response.status),
      title: given.title ?? response.statusText,
      detail: given.detail ?? '',
      invalidParams: given.invalidParams ?? [],
      ...(given.instance && { instance: given.instance }),
      ...(Number.isFinite(retryAfter) && { retryAfterSeconds: retryAfter }),
    },
    body,
  );
}
