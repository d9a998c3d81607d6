import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CollectedSpan {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  /** By key; values as text. */
  attributes: Record<string, string>;
  links: { traceId: string; spanId: string }[];
  status: { code?: number };
  service: string;
  /** Attributes of the process that it comes from, likewise. */
  resource: Record<string, string>;
}

interface Attribute {
  key: string;
  value: Record<string, unknown>;
}

interface OtlpBody {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: {
      spans: (Omit<CollectedSpan, 'attributes' | 'links' | 'service' | 'resource'> & {
        attributes: Attribute[];
        links?: CollectedSpan['links'];
      })[];
    }[];
  }[];
}

/** Keeps the spans that OTLP/HTTP with JSON sends to `/v1/traces`. */
export class OtlpCollector {
  readonly spans: CollectedSpan[] = [];
  private constructor(private readonly server: Server) {}

  static async start(): Promise<OtlpCollector> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        if (request.url !== '/v1/traces') return response.writeHead(404).end();
        collector.keep(JSON.parse(Buffer.concat(chunks).toString()) as OtlpBody);
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      });
    });
    const collector = new OtlpCollector(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  ofTrace(traceId: string): CollectedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }

  async stop(): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }

  private keep({ resourceSpans }: OtlpBody): void {
    for (const { resource: given, scopeSpans } of resourceSpans) {
      const resource = textsOf(given.attributes);
      const service = resource['service.name'] ?? '';
      for (const span of scopeSpans.flatMap(({ spans }) => spans))
        this.spans.push({ ...span, attributes: textsOf(span.attributes), links: span.links ?? [], service, resource });
    }
  }
}

const textsOf = (attributes: Attribute[]): Record<string, string> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, String(Object.values(value)[0])]));
