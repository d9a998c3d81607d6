/** One field that is wrong: `name` is the camelCase path with dots and zero-based indices, `code` is stable. */
export interface InvalidParam {
  name: string;
  code: string;
  reason: string;
}

/**
 * An error the caller is meant to see, as `application/problem+json`. `code` is stable and documented; texts may change.
 * Everything else that is thrown becomes a 500 with code `error` and no detail.
 */
export class ProblemError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    /** Same for every occurrence of this class of problem. */
    readonly title: string,
    /** What went wrong this time, for the caller. */
    readonly detail: string,
    readonly extra: {
      /** Name of the problem's class in `type` URLs, e.g. `NotFound`. */
      type: string;
      invalidParams?: InvalidParam[];
      headers?: Record<string, string>;
      cause?: unknown;
    },
  ) {
    super(detail, { cause: extra.cause });
  }
}

export class ValidationProblem extends ProblemError {
  constructor(invalidParams: InvalidParam[]) {
    super(400, 'invalid', 'Invalid input.', 'The request is not valid; see invalidParams.', {
      type: 'ValidationError',
      invalidParams,
    });
  }
}

export class NotFoundProblem extends ProblemError {
  constructor(detail = 'Not found.') {
    super(404, 'not_found', 'Not found.', detail, { type: 'NotFound' });
  }
}

export class ConflictProblem extends ProblemError {
  constructor(code: string, detail: string) {
    super(409, code, 'Conflict with the present state.', detail, { type: 'Conflict' });
  }
}

/** Our own trouble: nothing was done, the caller should try again. */
export class UnavailableProblem extends ProblemError {
  constructor(detail: string, retryAfterSeconds: number, cause?: unknown) {
    super(503, 'service_unavailable', 'Temporarily unavailable.', detail, {
      type: 'ServiceUnavailable',
      headers: { 'retry-after': String(retryAfterSeconds) },
      cause,
    });
  }
}
