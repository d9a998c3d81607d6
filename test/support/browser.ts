interface Cookie {
  value: string;
  path: string;
  /** As the server sent it. */
  text: string;
}

export interface Visit {
  /** Where all redirects have led. */
  url: URL;
  status: number;
  headers: Headers;
  text: string;
  json: Record<string, unknown>;
  /** Every address on the way. */
  way: URL[];
}

const mostRedirects = 15;

/** As much of a browser as signing in needs: redirects, and cookies of each host by their paths. */
export class Browser {
  private readonly cookies = new Map<string, Map<string, Cookie>>();

  /** @param headers of every request */
  constructor(private readonly headers: Record<string, string> = {}) {}

  cookie(host: string, name: string): Cookie | undefined {
    return this.cookies.get(host)?.get(name);
  }

  setCookie(host: string, name: string, value: string): void {
    this.of(host).set(name, { value, path: '/', text: '' });
  }

  get = (url: string | URL, headers?: Record<string, string>) => this.visit('GET', url, headers);

  /** Of the console's page: what it sends along. */
  change = (method: string, url: string | URL, body?: object, headers: Record<string, string> = {}) =>
    this.visit(method, url, { 'x-heraut-console': '1', ...headers }, body);

  async visit(
    method: string,
    address: string | URL,
    headers: Record<string, string> = {},
    body?: object,
  ): Promise<Visit> {
    let [url, verb] = [new URL(address), method];
    const way: URL[] = [];
    for (let redirects = 0; ; redirects++) {
      way.push(url);
      const response = await this.fetch(verb, url, headers, verb === method ? body : undefined);
      const location = response.headers.get('location');
      if (location === null || redirects === mostRedirects) {
        const text = await response.text();
        const isJson = /json/.test(response.headers.get('content-type') ?? '') && text !== '';
        const json = (isJson ? JSON.parse(text) : {}) as Record<string, unknown>;
        return { url, status: response.status, headers: response.headers, text, json, way };
      }
      await response.body?.cancel();
      [url, verb] = [new URL(location, url), 'GET'];
    }
  }

  /** One request, without redirects. */
  async fetch(method: string, url: URL, headers: Record<string, string> = {}, body?: object): Promise<Response> {
    const jar = [...this.of(url.hostname)].filter(([, { path }]) => `${url.pathname}/`.startsWith(path));
    const response = await fetch(url, {
      method,
      redirect: 'manual',
      headers: {
        ...this.headers,
        ...(jar.length > 0 ? { cookie: jar.map(([name, { value }]) => `${name}=${value}`).join('; ') } : {}),
        ...(body ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      body: body && JSON.stringify(body),
    });
    for (const text of response.headers.getSetCookie()) this.keep(url, text);
    return response;
  }

  private keep({ hostname }: URL, text: string): void {
    const [pair = '', ...attributes] = text.split(';').map((part) => part.trim());
    const [name = '', value = ''] = pair.split(/=(.*)/s);
    const of = (key: string) => attributes.find((each) => each.toLowerCase().startsWith(`${key}=`))?.split(/=(.*)/s)[1];
    const expires = of('expires');
    const isGone = of('max-age') === '0' || (expires !== undefined && Date.parse(expires) < Date.now());
    if (isGone) this.of(hostname).delete(name);
    else this.of(hostname).set(name, { value, path: of('path') ?? '/', text });
  }

  private of(host: string): Map<string, Cookie> {
    let jar = this.cookies.get(host);
    if (!jar) this.cookies.set(host, (jar = new Map()));
    return jar;
  }
}
