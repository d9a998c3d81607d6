/** The part of the package that the tests need; it has no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  interface Details {
    prompt: { name: string };
    params: Record<string, string>;
  }

  export default class Provider {
    constructor(issuer: string, configuration: object);
    use(middleware: (context: { path: string; body: object }, next: () => Promise<void>) => Promise<void>): void;
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Details>;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  }
}
