import { titleOf, type ProblemClass } from './problem-classes.js';

/** One field that is wrong: `name` is the camelCase path with dots and zero-based indices, `code` is stable. */
export interface InvalidParam {
  name: string;
  code: string;
  reason: string;
}

/** The field name for what is wrong with the input as a whole. */
export const wholeInput = 'nonFieldErrors';

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

/** A problem of one of the classes that have their own explanation page. */
export abstract class ClassifiedProblem extends ProblemError {
  constructor(
    type: ProblemClass,
    status: number,
    code: string,
    detail: string,
    extra: Omit<ProblemError['extra'], 'type'> = {},
  ) {
    super(status, code, titleOf(type), detail, { ...extra, type });
  }
}

export class ValidationProblem extends ClassifiedProblem {
  constructor(invalidParams: InvalidParam[]) {
    super('ValidationError', 400, 'invalid', 'The request is not valid; see invalidParams.', { invalidParams });
  }
}

export class ParseProblem extends ClassifiedProblem {
  constructor(detail: string, cause?: unknown) {
    super('ParseError', 400, 'parse_error', detail, { cause });
  }
}

export class PermissionProblem extends ClassifiedProblem {
  constructor(code: string, detail: string) {
    super('PermissionDenied', 403, code, detail);
  }
}

export class NotFoundProblem extends ClassifiedProblem {
  constructor(detail = 'Not found.') {
    super('NotFound', 404, 'not_found', detail);
  }
}

export class MethodProblem extends ClassifiedProblem {
  constructor(method: string, allowed: string) {
    super('MethodNotAllowed', 405, 'method_not_allowed', `${method} is not possible here.`, {
      headers: { allow: allowed },
    });
  }
}

export class NotAcceptableProblem extends ClassifiedProblem {
  constructor() {
    super('NotAcceptable', 406, 'not_acceptable', 'The answer is application/json, which Accept excludes.');
  }
}

export class ConflictProblem extends ClassifiedProblem {
  constructor(code: string, detail: string) {
    super('Conflict', 409, code, detail);
  }
}

export class PayloadTooLargeProblem extends ClassifiedProblem {
  constructor(detail: string) {
    super('PayloadTooLarge', 413, 'payload_too_large', detail, { headers: { connection: 'close' } });
  }
}

export class UnsupportedMediaTypeProblem extends ClassifiedProblem {
  constructor(detail: string) {
    super('UnsupportedMediaType', 415, 'unsupported_media_type', detail);
  }
}

export class HeadersTooLargeProblem extends ClassifiedProblem {
  constructor() {
    super('HeadersTooLarge', 431, 'headers_too_large', 'The URL and the headers are larger than 16 KiB.');
  }
}

/** Our own trouble: nothing was done, the caller should try again. */
export class UnavailableProblem extends ClassifiedProblem {
  constructor(detail: string, retryAfterSeconds: number, cause?: unknown) {
    super('ServiceUnavailable', 503, 'service_unavailable', detail, {
      headers: { 'retry-after': String(retryAfterSeconds) },
      cause,
    });
  }
}

/** Not the caller's fault, and nothing the caller may learn more about than `instance`, which the log explains. */
export class UnexpectedProblem extends ClassifiedProblem {
  constructor(cause: unknown) {
    super('APIException', 500, 'error', 'Something went wrong here; the log knows more under this instance.', {
      cause,
    });
  }
}
