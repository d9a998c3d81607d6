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

/** Whether the same request may succeed in a moment: nothing answered, or the API says that its fault is its own. */
export const isPassing = (error: unknown): boolean =>
  error instanceof Unreachable || (error instanceof ApiProblem && [429, 502, 503, 504].includes(error.status));

/** Whether the answer of Heraut may have been lost on its way: what was asked for may be done. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof Unreachable || (error instanceof ApiProblem && [502, 504].includes(error.status));

/** Whether what was asked for may be done, or be under way: nothing says that it is not. */
export const mayBeDone = (error: unknown): boolean =>
  !(error instanceof ApiProblem) || error.status >= 500 || error.code === 'idempotency-key-in-flight';

/** Whether Heraut itself is at fault: the same request may succeed later. */
export const isFault = (error: unknown): boolean => error instanceof ApiProblem && error.status >= 500;

export function readProblem(response: Response, body: unknown): ApiProblem {
  const given = (typeof body === 'object' && body !== null ? body : {}) as Partial<Problem>;
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new ApiProblem(
    {
      status: response.status,
      code: given.code ?? `http-${response.status}`,
      title: given.title ?? response.statusText,
      detail: given.detail ?? '',
      invalidParams: given.invalidParams ?? [],
      ...(given.instance && { instance: given.instance }),
      ...(Number.isFinite(retryAfter) && { retryAfterSeconds: retryAfter }),
    },
    body,
  );
}
