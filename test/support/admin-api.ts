import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { closed } from '../../scripts/fuzz/operations.mjs';
import { Api, type ApiAnswer, type ApiRequest } from './api.js';

interface Operation {
  operationId: string;
  parameters?: { name: string; in: string; required: boolean; schema: object }[];
  responses: Record<string, { content?: Record<string, { schema: object }> }>;
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object> };
}

/** The fields of answers that tests read; the document decides which of them an answer has. */
export interface AdminBody {
  [field: string]: unknown;
  code: string;
  invalidParams: { name: string; code: string }[];
  id: string;
  secret: string;
  applications: unknown[];
  channels: unknown[];
  subscriptions: { id: string }[];
  acceptedAt: string;
  endedAt: string;
  nextAttemptAt: string;
  attempts: { attempt: number; delaySeconds: number; elapsedSeconds: number; elapsed: string; startedAt: string }[];
  live: { startedAt: string | null; nextAttemptAt: string } | null;
  deliveries: { notificationId: string; subscriptionId: string; state: string }[];
  notifications: { id: string; deliveries: Record<string, number> }[];
  publisher: string;
  story: { event: string; by: string | null; status: number | null }[];
  nextCursor: string | null;
}

export type AdminAnswer = Omit<ApiAnswer, 'json' | 'list'> & { json: AdminBody };

/** The admin API of one process. Every answer is compared with the OpenAPI document that the process itself serves. */
export class AdminApi {
  private readonly validators = new Map<string, ValidateFunction>();

  private constructor(
    readonly api: Api,
    readonly document: Document,
    private readonly ajv: Ajv,
  ) {}

  static async start(settings: Record<string, string> = {}): Promise<AdminApi> {
    const api = await Api.start(settings);
    const document = JSON.parse((await api.get(`${api.origin}/docs/openapi.json`)).text) as Document;
    const ajv = new Ajv({ strict: false, allErrors: true });
    addFormats.default(ajv);
    ajv.addSchema({ $id: 'document', components: closed(document.components) });
    return new AdminApi(api, document, ajv);
  }

  close(): Promise<void> {
    return this.api.close();
  }

  get = (path: string, request?: ApiRequest) => this.call('GET', path, request);
  put = (path: string, body: unknown, request?: ApiRequest) => this.call('PUT', path, { body, ...request });
  post = (path: string, body?: unknown, request?: ApiRequest) => this.call('POST', path, { body, ...request });
  patch = (path: string, body: unknown, request?: ApiRequest) => this.call('PATCH', path, { body, ...request });
  delete = (path: string, request?: ApiRequest) => this.call('DELETE', path, request);

  /** @throws when the document does not know the operation, the status, or the form of the answer */
  async call(method: string, path: string, request?: ApiRequest): Promise<AdminAnswer> {
    const { status, headers, text } = await this.api.call(method, this.api.origin + path, request);
    const answer = { status, headers, text, json: (text === '' ? {} : JSON.parse(text)) as AdminBody };
    const operation = this.operationOf(method, path.split('?', 1)[0]!);
    const response = operation?.responses[answer.status];
    if (!operation || !response) {
      throw new Error(`The document does not say that ${method} ${path} can answer ${answer.status}: ${answer.text}`);
    }
    const contentType = answer.headers.get('content-type')?.split(';', 1)[0];
    if (!response.content && answer.text === '') return answer;
    const schema = response.content?.[contentType ?? '']?.schema;
    if (!schema) throw new Error(`The document does not say that ${method} ${path} answers in ${contentType}`);
    const validate = this.compile(schema);
    if (validate(answer.json)) return answer;
    throw new Error(`${method} ${path} answers other than documented: ${this.ajv.errorsText(validate.errors)}`);
  }

  private operationOf(method: string, path: string): Operation | undefined {
    const { paths } = this.document;
    const fits = (candidate: string) => new RegExp(`^${candidate.replace(/\{\w+\}/g, '[^/]+')}$`).test(path);
    // As the router does it: what is written out comes before a parameter.
    const template = path in paths ? path : Object.keys(paths).find(fits);
    return template === undefined ? undefined : this.document.paths[template]![method.toLowerCase()];
  }

  private compile(schema: object): ValidateFunction {
    const text = JSON.stringify(closed(schema)).replaceAll('"#/components/', '"document#/components/');
    let validate = this.validators.get(text);
    if (!validate) this.validators.set(text, (validate = this.ajv.compile(JSON.parse(text) as object)));
    return validate;
  }
}
