import { tokenRefusals } from '../auth/check-claims.js';

interface Explanation {
  status: number;
  /** The `code`s of this class; a class with more than these says so in `explanation`. */
  codes: readonly string[];
  title: string;
  explanation: string;
}

/** Every class of problem a `type` URL can name, as the standard and its reference name them; each has a page. */
export const problemClasses = {
  ValidationError: {
    status: 400,
    codes: ['invalid'],
    title: 'Invalid input.',
    explanation: 'One or more fields are wrong. invalidParams names each with a stable code and a reason.',
  },
  ParseError: {
    status: 400,
    codes: ['parse_error'],
    title: 'Malformed request.',
    explanation: 'The request cannot be read: the body is not JSON in UTF-8, or the request breaks the rules of HTTP.',
  },
  NotAuthenticated: {
    status: 401,
    codes: ['not-signed-in'],
    title: 'Not signed in.',
    explanation:
      'A page of the console has no session, or no longer: sign in. A request of a program without a token is answered with 403 and code permission_denied.',
  },
  AuthenticationFailed: {
    status: 401,
    codes: ['authentication_failed'],
    title: 'Wrong credentials.',
    explanation:
      'Reserved. A token that is not valid is answered with 403 and a code that starts with jwt or names it.',
  },
  PermissionDenied: {
    status: 403,
    codes: ['permission_denied', ...tokenRefusals, 'role-too-low', 'cross-site', 'sign-in-refused'],
    title: 'Not allowed.',
    explanation:
      'The token is missing or not valid, or the application it names lacks the scope or does not own the resource. In the console: the user has too low a role, or was not let in, or the request does not come from a page of the console.',
  },
  IdempotencyKeyInvalid: {
    status: 400,
    codes: ['idempotency-key-invalid'],
    title: 'The Idempotency-Key cannot be used.',
    explanation: 'It must be 1 to 255 printable ASCII characters, as a quoted string or bare, and be sent once.',
  },
  IdempotencyKeyInFlight: {
    status: 409,
    codes: ['idempotency-key-in-flight'],
    title: 'The first request is still running.',
    explanation: 'A request with this Idempotency-Key has not been answered yet. Repeat it after Retry-After seconds.',
  },
  IdempotencyKeyReused: {
    status: 422,
    codes: ['idempotency-key-reused'],
    title: 'The Idempotency-Key was used before.',
    explanation: 'It belongs to another request of the same application. A key means one request, with one content.',
  },
  NotFound: {
    status: 404,
    codes: ['not_found'],
    title: 'Not found.',
    explanation: 'There is nothing at this URL. No path ends in a slash, except where the documentation shows one.',
  },
  MethodNotAllowed: {
    status: 405,
    codes: ['method_not_allowed'],
    title: 'Method not possible.',
    explanation: 'The URL exists, the method does not. The Allow header lists the methods that do.',
  },
  NotAcceptable: {
    status: 406,
    codes: ['not_acceptable'],
    title: 'No acceptable answer.',
    explanation: 'Answers are JSON, and the Accept header excludes that.',
  },
  Conflict: {
    status: 409,
    codes: [],
    title: 'Conflict with the present state.',
    explanation:
      'The request fits the interface but not the state the resource is in. The code, one of many, says which state.',
  },
  Gone: {
    status: 410,
    codes: ['gone'],
    title: 'Gone.',
    explanation: 'Reserved. There was something at this URL, and it will not come back.',
  },
  PreconditionFailed: {
    status: 412,
    codes: ['changed-meanwhile'],
    title: 'Precondition failed.',
    explanation: 'The resource is no longer as the If-Match of the request says: read it again, and decide again.',
  },
  RequestTimeout: {
    status: 408,
    codes: ['request_timeout'],
    title: 'The request took too long.',
    explanation: 'Its headers have ten seconds to arrive, and all of it has thirty.',
  },
  PayloadTooLarge: {
    status: 413,
    codes: ['payload_too_large'],
    title: 'Body too large.',
    explanation: 'The body is larger than this server accepts (setting BODY_LIMIT_BYTES).',
  },
  UnsupportedMediaType: {
    status: 415,
    codes: ['unsupported_media_type'],
    title: 'Media type not supported.',
    explanation: 'Bodies are JSON in UTF-8, sent with Content-Type: application/json and without Content-Encoding.',
  },
  ExpectationFailed: {
    status: 417,
    codes: ['expectation_failed'],
    title: 'Expectation not met.',
    explanation: 'The Expect header asks for something other than 100-continue.',
  },
  MisdirectedRequest: {
    status: 421,
    codes: ['host-not-allowed'],
    title: 'Another host.',
    explanation: 'The host in the request is not one of those that this server answers for (setting ALLOWED_HOSTS).',
  },
  Throttled: {
    status: 429,
    codes: ['throttled', 'too-many-fetches', 'too-many-requests'],
    title: 'Too many requests.',
    explanation:
      'Too many requests of this address or this application were refused in one minute, or too many of its requests to fetch, to change something or to search are not answered yet, or too many of its callbacks are being called. Retry-After says when to repeat it.',
  },
  HeadersTooLarge: {
    status: 431,
    codes: ['headers_too_large'],
    title: 'Request line or headers too large.',
    explanation: 'The URL and the headers together are larger than this server reads, or there are too many headers.',
  },
  APIException: {
    status: 500,
    codes: ['error'],
    title: 'Internal error.',
    explanation: 'A fault of this server. The log describes it under the instance of the answer.',
  },
  ServiceUnavailable: {
    status: 503,
    codes: ['service_unavailable', 'day-away', 'too-many-bodies', 'secret-unreadable'],
    title: 'Temporarily unavailable.',
    explanation:
      'The request was not carried out because something it needs is out of reach, or in use by others. Repeat it after Retry-After.',
  },
} as const satisfies Record<string, Explanation>;

export type ProblemClass = keyof typeof problemClasses;

export const isProblemClass = (name: string): name is ProblemClass => Object.hasOwn(problemClasses, name);

/**
 * A type without an explanation (test/error-codes.spec.ts looks for one) is its own title: an answer must not fail on
 * it.
 */
export const titleOf = (name: string): string => (isProblemClass(name) ? problemClasses[name].title : name);
