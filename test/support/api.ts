import type { LoggerService } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { ApplicationsService } from '../../src/auth/applications.service.js';
import type { Scope } from '../../src/auth/scopes.js';
import { readSettings } from '../../src/config/settings.js';
import { createHeraut } from '../../src/create-heraut.js';
import type { InvalidParam } from '../../src/infra/http/problem.js';
import { JsonLogger } from '../../src/infra/logging/json-logger.js';
import { createDatabase } from './database.js';
import { secretWatch } from './secret-watch.js';
import { signToken } from './tokens.js';

/** The fields of JSON bodies that tests read; the call decides which of them there are. */
export interface AnswerBody {
  [field: string]: unknown;
  url: string;
  code: string;
  detail: string;
  instance: string;
  invalidParams: InvalidParam[];
  filters: string[];
  secret: string;
  attempts: Record<string, unknown>[];
  kanalen: { naam: string; filters: Record<string, string> }[];
}

export interface ApiAnswer {
  status: number;
  headers: Headers;
  text: string;
  /** The body where it is a JSON object, otherwise empty. */
  json: AnswerBody;
  /** The body where it is a JSON array, otherwise empty. */
  list: AnswerBody[];
}

export interface ApiRequest {
  /** Without: the superuser's. */
  token?: string | null;
  /** Sent as JSON; a text or bytes go out as they are. */
  body?: unknown;
  headers?: Record<string, string>;
}

export interface LoggedEvent {
  level: 'fatal' | 'error' | 'warn' | 'log' | 'debug' | 'verbose';
  event?: string;
  [field: string]: unknown;
}

export const superuser = { clientId: 'superuser', secret: 'the secret of the superuser' };

/** Nest has one logger for the whole process, so every Api that is open writes here. */
const logged: LoggedEvent[] = [];
let open = 0;

/** Heraut in this process with a database of its own, listening on a free port, with calls to it. */
export class Api {
  private constructor(
    readonly app: NestFastifyApplication,
    readonly origin: string,
    private readonly dropDatabase: () => Promise<void>,
  ) {}

  static async start(settings: Record<string, string> = {}): Promise<Api> {
    // Of the file before.
    if (open++ === 0) logged.length = 0;
    const database = await createDatabase();
    secretWatch.knowSettings({ SUPERUSER_SECRET: superuser.secret, ...settings });
    const app = await createHeraut(
      readSettings({
        PORT: '0',
        DATABASE_URL: database.url,
        DATABASE_POOL_SIZE: '2',
        SUPERUSER_CLIENT_ID: superuser.clientId,
        SUPERUSER_SECRET: superuser.secret,
        // Every test calls from one address.
        REFUSALS_PER_MINUTE: '1000000',
        CALLBACK_NETWORKS: 'any', // the receivers of tests are on this machine
        ...settings,
      }),
      collector(),
    );
    await app.listen(0, '127.0.0.1');
    return new Api(app, await app.getUrl(), () => database.drop());
  }

  async close(): Promise<void> {
    open--;
    await this.app.close();
    await this.dropDatabase();
  }

  get logged(): LoggedEvent[] {
    return logged;
  }

  get base(): string {
    return `${this.origin}/api/v1`;
  }

  get superuserToken(): string {
    return signToken(superuser);
  }

  /** A new application with these scopes, and a token of it. */
  async tokenWith(...scopes: Scope[]): Promise<string> {
    const clientId = `client-${Math.random().toString(36).slice(2)}`;
    const service = this.app.get(ApplicationsService);
    const secret = Math.random().toString(36).slice(2);
    secretWatch.know(secret);
    await service.create({ clientId, secret, label: clientId, scopes, isSuperuser: false });
    return signToken({ clientId, secret });
  }

  /** `path` below /api/v1, or an absolute URL. */
  async call(method: string, path: string, { token, body, headers = {} }: ApiRequest = {}): Promise<ApiAnswer> {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array;
    const authorization = token === null ? undefined : `Bearer ${token ?? this.superuserToken}`;
    secretWatch.knowOf(body, authorization);
    const response = await fetch(path.startsWith('http') ? path : this.base + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(authorization === undefined ? {} : { authorization }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined || isRaw ? (body as RequestInit['body']) : JSON.stringify(body),
    });
    const text = await response.text();
    secretWatch.answer(`${method} ${path}`, response.headers, text);
    const isJson = /json/.test(response.headers.get('content-type') ?? '') && text !== '';
    const parsed: unknown = isJson ? JSON.parse(text) : {};
    const [json, list] = Array.isArray(parsed) ? [{}, parsed] : [parsed, []];
    return { status: response.status, headers: response.headers, text, json: json as AnswerBody, list };
  }

  get = (path: string, request?: ApiRequest) => this.call('GET', path, request);
  post = (path: string, body: unknown, request?: ApiRequest) => this.call('POST', path, { body, ...request });
  put = (path: string, body: unknown, request?: ApiRequest) => this.call('PUT', path, { body, ...request });
  patch = (path: string, body: unknown, request?: ApiRequest) => this.call('PATCH', path, { body, ...request });
  delete = (path: string, request?: ApiRequest) => this.call('DELETE', path, request);
}

function collector(): LoggerService {
  // As a process would write it.
  const written = JsonLogger.open({ LOG_LEVEL: 'trace' }, { write: (line: string) => secretWatch.line(line) });
  const at =
    (level: LoggedEvent['level']) =>
    (message: unknown): void => {
      written[level](message);
      logged.push(typeof message === 'object' ? { level, ...message } : { level, message });
    };
  return {
    fatal: at('fatal'),
    error: at('error'),
    warn: at('warn'),
    log: at('log'),
    debug: at('debug'),
    verbose: at('verbose'),
  };
}
