import { CallTime } from '../infra/call-time.js';
import { CommandFailure, exits } from './exits.js';

export interface InvalidParam {
  name: string;
  code: string;
  reason: string;
}

/** The server refused a request: its problem document. */
export class AdminRefusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    readonly detail: string,
    readonly invalidParams: readonly InvalidParam[] = [],
  ) {
    super(detail);
  }
}

/** Whether what failed may work later: what is neither a refusal nor a failure of ours is that of a connection. */
export function isPassing(error: unknown): boolean {
  if (error instanceof AdminRefusal) return error.status === 429 || error.status >= 500;
  if (error instanceof CommandFailure) return error.exit === exits.unreachable;
  return true;
}

export type QueryValue = string | number | boolean | undefined | readonly string[];

export interface AdminRequest {
  /** An undefined one is left out; an array repeats its name. */
  query?: Readonly<Record<string, QueryValue>>;
  /** Sent as JSON. */
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
  /** It changes nothing, as a GET, or has an idempotency key: nobody need be told that it may have been done. */
  isRepeatable?: boolean;
}

/** With these the connection was made and ended, or nothing more came: the request may have been carried out. */
const afterItWasSent: ReadonlySet<unknown> = new Set([
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

const lookTimeoutMs = 10_000;

/** Calls of the admin API, and of the other paths of the same server. */
export class AdminClient {
  readonly url: string;
  /** Longer than any operation takes; a server that is frozen is told from one that works. */
  protected readonly timeoutMs: number = 120_000;

  /**
   * @param url of the server, with the path that a proxy puts before it, if any
   * @param token asked for with each request, as tokens expire
   * @throws {CommandFailure} when `url` is none
   */
  constructor(
    url: string,
    private readonly token: () => string,
  ) {
    this.url = url.replace(/\/+$/, '');
    // Where it cannot be read as a URL as well: the password may be why.
    if (url.includes('@'))
      throw new CommandFailure(
        exits.wrongUse,
        'The URL has an @ in it, as with a user or a password, and these are not sent. Set HERAUT_URL, or give --url, without them.',
      );
    if (!/^https?:\/\//.test(url) || !URL.canParse(url))
      throw new CommandFailure(exits.wrongUse, `${url} is no http or https URL. Set HERAUT_URL, or give --url.`);
  }

  /**
   * @returns the parsed body; undefined where there is none
   * @throws {AdminRefusal} when the server refuses it
   * @throws {CommandFailure} when it cannot be reached, or is not Heraut; it says where a change may have been made
   */
  async request<Answer>(method: string, path: string, request: AdminRequest = {}): Promise<Answer> {
    const isChange = method !== 'GET' && !request.isRepeatable;
    const { response, text } = await this.answer(method, path, request).catch((error: unknown) => {
      throw isChange && error instanceof CommandFailure && mayBeDone(error.cause) ? orDone(error) : error;
    });
    if (response.ok && text === '' && method !== 'GET') return undefined as Answer;
    const isJson = /[/+]json\b/.test(response.headers.get('content-type') ?? '');
    const body = isJson ? this.parse(text) : undefined;
    if (body === undefined) {
      const failure = this.notHeraut(`${method} ${path} was answered ${response.status}, not in JSON`);
      // A proxy that lost Heraut, or had no more patience, answers so after it has passed the request on.
      throw isChange && (response.ok || response.status >= 500) ? orDone(failure) : failure;
    }
    if (response.ok) return body as Answer;
    throw refusalOf(response.status, body);
  }

  /** All of it, whatever the status, within the time of an operation. */
  private async answer(
    method: string,
    path: string,
    request: AdminRequest,
  ): Promise<{ response: Response; text: string }> {
    const time = new CallTime(request.signal);
    try {
      const response = await this.send(method, path, { ...request, signal: time.within(this.timeoutMs) });
      return { response, text: await this.textOf(response) };
    } finally {
      time.end();
    }
  }

  /** The answer to a request that was accepted, its body unread. `request.signal` is all that ends it. */
  async open(path: string, request: AdminRequest): Promise<Response> {
    const response = await this.send('GET', path, request);
    if (response.ok) return response;
    const body = this.parse(await this.textOf(response));
    if (body === undefined) throw this.notHeraut(`GET ${path} was answered ${response.status}`);
    throw refusalOf(response.status, body);
  }

  /**
   * The answer that any caller gets at a path: without a token, and whatever the status.
   * @param isBody whether it is one of Heraut: another service may answer with JSON as well
   */
  async look<Body>(
    path: string,
    isBody: (body: unknown) => body is Body,
  ): Promise<{ status: number; headers: Headers; body: Body }> {
    const signal = AbortSignal.timeout(lookTimeoutMs);
    const response = await this.send('GET', path, { signal }, {});
    const body = this.parse(await this.textOf(response));
    if (body === undefined) throw this.notHeraut(`GET ${path} was answered ${response.status}, not in JSON`);
    if (!isBody(body)) throw this.notHeraut(`GET ${path} was answered ${response.status}, in other JSON than Heraut’s`);
    return { status: response.status, headers: response.headers, body };
  }

  private async send(
    method: string,
    path: string,
    { query, body, headers, signal }: AdminRequest,
    authorization: Record<string, string> = { authorization: `Bearer ${this.token()}` },
  ): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(this.url + path + textOfQuery(query), {
        method,
        // Followed, it would lose the token or the body, or take them to wherever it leads.
        redirect: 'manual',
        headers: {
          ...authorization,
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        body: body === undefined ? null : JSON.stringify(body),
        ...(signal ? { signal } : {}),
      });
    } catch (error) {
      throw this.unreachable(error);
    }
    if (response.status < 300 || response.status >= 400) return response;
    await response.body?.cancel().catch(() => {}); // nobody reads it
    throw this.elsewhere(path, response);
  }

  private async textOf(response: Response): Promise<string> {
    try {
      return await response.text();
    } catch (error) {
      throw this.unreachable(error);
    }
  }

  private parse(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      return undefined; // an answer that is cut, or that of a proxy
    }
  }

  private unreachable(error: unknown): CommandFailure {
    const { name, message, cause } = error as Error & { cause?: { code?: string; message?: string } };
    const why = name === 'TimeoutError' ? 'it does not answer' : cause?.code || cause?.message;
    return new CommandFailure(
      exits.unreachable,
      `Heraut cannot be reached at ${this.url} (${why || message}). Is it running, and is that its address? With ADMIN_PORT it is that port. Set HERAUT_URL, or give --url; \`heraut doctor\` looks further.`,
      { cause: error },
    );
  }

  private elsewhere(path: string, { status, headers }: Response): CommandFailure {
    const location = headers.get('location');
    const to = location !== null && URL.canParse(location, this.url + path) ? new URL(location, this.url + path) : null;
    return new CommandFailure(
      exits.unreachable,
      `${this.url} answers ${status}, a redirect${to ? ` to ${to.origin}${to.pathname}` : ''}, and none is followed. If Heraut is there, set HERAUT_URL to its address, without ${path}, or give --url.`,
    );
  }

  private notHeraut(what: string): CommandFailure {
    return new CommandFailure(
      exits.unreachable,
      `${what}: at ${this.url} there is no admin API of Heraut, or a proxy answers in its place. Set HERAUT_URL, or give --url.`,
    );
  }
}

/** @param error that of `fetch`, or of reading an answer */
function mayBeDone(error: unknown): boolean {
  if (!(error instanceof Error)) return false; // a redirect: it was answered
  return error.name === 'TimeoutError' || afterItWasSent.has((error.cause as { code?: unknown } | undefined)?.code);
}

const orDone = ({ exit, message, cause }: CommandFailure): CommandFailure =>
  new CommandFailure(exit, `${message} It may have been done all the same: look before you repeat it.`, { cause });

function textOfQuery(query: AdminRequest['query'] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const each of Array.isArray(value) ? (value as string[]) : [String(value as string)])
      parameters.append(name, each);
  }
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

function refusalOf(status: number, body: unknown): AdminRefusal {
  const { code, title, detail, invalidParams } = (body ?? {}) as Partial<AdminRefusal>;
  return new AdminRefusal(status, code ?? 'error', title ?? '', detail ?? `It was answered ${status}.`, invalidParams);
}
