/** One field that is wrong: `name` is the camelCase path with dots and zero-based indices, `code` is stable. */
export interface InvalidParam {
  name: string;
  code: string;
  reason: string;
}

// A body of a megabyte can be wrong in a hundred thousand places, and its names can be as long: too much to answer or
// to log.
export const mostInvalidParams = 50;
export const longestParamName = 200;

/** The `name` for the input as a whole; an answer shows the name that the dialect has for it. */
export const wholeInput = '';

/**
 * An error the caller is meant to see, as `application/problem+json`. `code` is stable and documented; texts may
 * change. Everything else that is thrown becomes a 500 with code `error` and no detail.
 */
export class ProblemError extends Error {
  constructor(
    /** Name of the type of problem; the dialect has a title and a page for it. */
    readonly type: string,
    readonly status: number,
    readonly code: string,
    /** The failure this time, for the caller. */
    readonly detail: string,
    readonly extra: {
      invalidParams?: InvalidParam[];
      headers?: Record<string, string>;
      cause?: unknown;
    } = {},
  ) {
    super(detail, { cause: extra.cause });
  }
}

export class ValidationProblem extends ProblemError {
  constructor(invalidParams: InvalidParam[]) {
    super('ValidationError', 400, 'invalid', 'The request is not valid; see invalidParams.', { invalidParams });
  }
}

export class ParseProblem extends ProblemError {
  constructor(detail: string, cause?: unknown) {
    super('ParseError', 400, 'parse_error', detail, { cause });
  }
}

/** In the console: there is no session, or no longer. */
export class NotSignedInProblem extends ProblemError {
  constructor() {
    // RFC 9110 §15.5.2 demands the header; browsers ask nobody for a token because of it.
    super('NotAuthenticated', 401, 'not-signed-in', 'You are not signed in, or no longer.', {
      headers: { 'www-authenticate': 'Bearer' },
    });
  }
}

export class PermissionProblem extends ProblemError {
  constructor(code: string, detail: string) {
    super('PermissionDenied', 403, code, detail);
  }
}

export class NotFoundProblem extends ProblemError {
  constructor(detail = 'Not found.') {
    super('NotFound', 404, 'not_found', detail);
  }
}

export class MethodProblem extends ProblemError {
  constructor(method: string, allowed: string) {
    super('MethodNotAllowed', 405, 'method_not_allowed', `${method} is not possible here.`, {
      headers: { allow: allowed },
    });
  }
}

export class NotAcceptableProblem extends ProblemError {
  constructor() {
    super('NotAcceptable', 406, 'not_acceptable', 'The answer is application/json, which Accept excludes.');
  }
}

export class ConflictProblem extends ProblemError {
  constructor(code: string, detail: string) {
    super('Conflict', 409, code, detail);
  }
}

/** `If-Match` names another state of the resource than it has now (RFC 9110 §13.1.1). */
export class ChangedMeanwhileProblem extends ProblemError {
  constructor() {
    super('PreconditionFailed', 412, 'changed-meanwhile', 'It was changed since you read it: read it again.');
  }
}

/** The connection is closed after this answer. */
export class RequestTimeoutProblem extends ProblemError {
  constructor() {
    super('RequestTimeout', 408, 'request_timeout', 'The request took too long to arrive.');
  }
}

export class PayloadTooLargeProblem extends ProblemError {
  constructor(detail: string) {
    super('PayloadTooLarge', 413, 'payload_too_large', detail);
  }
}

export class UnsupportedMediaTypeProblem extends ProblemError {
  constructor(detail: string) {
    super('UnsupportedMediaType', 415, 'unsupported_media_type', detail);
  }
}

/** The caller may or may not send a body after this answer, so the connection is closed. */
export class ExpectationProblem extends ProblemError {
  constructor() {
    super('ExpectationFailed', 417, 'expectation_failed', 'The only expectation that can be met is 100-continue.', {
      headers: { connection: 'close' },
    });
  }
}

/** The names of those that are allowed are not told: whoever is meant to call knows them. */
export class MisdirectedProblem extends ProblemError {
  constructor() {
    super('MisdirectedRequest', 421, 'host-not-allowed', 'The host that the request names is not served here.');
  }
}

export class ThrottledProblem extends ProblemError {
  constructor(retryAfterSeconds: number) {
    super('Throttled', 429, 'throttled', 'Too many requests were refused in this minute.', {
      headers: { 'retry-after': String(retryAfterSeconds) },
    });
  }
}

/** Of a subscriber that fetches, while its requests before this one are not answered yet. */
export class TooManyFetchesProblem extends ProblemError {
  constructor(detail: string, retryAfterSeconds: number) {
    super('Throttled', 429, 'too-many-fetches', detail, { headers: { 'retry-after': String(retryAfterSeconds) } });
  }
}

/** Of a caller whose requests before this one take all the turns that it may have. Nothing was done. */
export class TooManyRequestsProblem extends ProblemError {
  constructor(retryAfterSeconds: number) {
    const detail = 'Too many requests of yours are not answered yet. Repeat this one later.';
    super('Throttled', 429, 'too-many-requests', detail, { headers: { 'retry-after': String(retryAfterSeconds) } });
  }
}

export class HeadersTooLargeProblem extends ProblemError {
  constructor() {
    super(
      'HeadersTooLarge',
      431,
      'headers_too_large',
      'The URL and the headers are larger than 16 KiB, or there are more than 100 headers.',
    );
  }
}

/** A fault on this side, or a limit: nothing was done, the caller should try again. */
export class UnavailableProblem extends ProblemError {
  /** @param cause undefined: nothing failed, and it is logged as a refusal */
  constructor(detail: string, retryAfterSeconds: number, cause?: unknown, code = 'service_unavailable') {
    super('ServiceUnavailable', 503, code, detail, {
      headers: { 'retry-after': String(retryAfterSeconds) },
      cause,
    });
  }
}

/** Of a call that makes or sends something: repeated, it would do so a second time. */
export class MaybeDoneProblem extends UnavailableProblem {
  constructor(cause: unknown) {
    super('The change may have been done. Look whether it was before you repeat it.', 1, cause);
  }
}

/** Not the caller's fault. The caller learns only the `instance`; the log has the rest. */
export class UnexpectedProblem extends ProblemError {
  constructor(cause: unknown) {
    super('APIException', 500, 'error', 'Something went wrong here; the log knows more under this instance.', {
      cause,
    });
  }
}
