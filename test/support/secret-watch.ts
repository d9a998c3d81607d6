/** Fields of requests that hold a secret, wherever they stand. */
const secretFields = new Set(['secret', 'auth', 'clientSecret', 'key', 'headers']);
/** Shorter ones are ordinary words, or parts of them; those after a scheme (`Bearer receiver`) even more. */
const [shortest, shortestAfterScheme] = [8, 12];

/**
 * Holds every line of the log and every answer that a test sees against every secret that it uses. Both harnesses, of
 * processes (spawn-heraut.ts) and in this process (api.ts), tell it all of them.
 */
export class SecretWatch {
  private readonly secrets = new Set<string>();
  private readonly seen: { where: string; text: string }[] = [];

  know(...secrets: (string | null | undefined)[]): void {
    for (const secret of secrets) {
      if (!secret) continue;
      if (secret.length >= shortest) this.add(secret);
      const afterScheme = secret.slice(secret.indexOf(' ') + 1);
      if (afterScheme.length >= shortestAfterScheme) this.add(afterScheme);
    }
  }

  /** Those in a request's body, and the token it carries. */
  knowOf(body: unknown, authorization?: string): void {
    this.know(authorization);
    if (typeof body !== 'object' || body === null) return;
    for (const [name, value] of Object.entries(body)) {
      if (typeof value === 'string') {
        if (secretFields.has(name)) this.know(value);
      } else if (name === 'headers' && typeof value === 'object' && value !== null) {
        this.know(...Object.values(value as Record<string, string>));
      } else this.knowOf(value);
    }
  }

  /** The secrets of the settings of a process. */
  knowSettings(settings: Record<string, string | undefined>): void {
    const { SUPERUSER_SECRET, SECRET_KEYS, ALERT_WEBHOOK_SECRET, EMAIL_HOST_PASSWORD, OIDC_CLIENT_SECRET } = settings;
    this.know(
      OIDC_CLIENT_SECRET,
      ALERT_WEBHOOK_SECRET,
      ALERT_WEBHOOK_SECRET?.replace(/^whsec_/, ''),
      EMAIL_HOST_PASSWORD,
    );
    this.know(SUPERUSER_SECRET, ...(SECRET_KEYS ?? '').split(',').map((entry) => entry.split(':')[1]));
  }

  line(text: string): void {
    this.seen.push({ where: 'a line of the log', text });
  }

  /** A secret may be in an answer once: where it was made, as the field `secret` of an answer that nobody may store. */
  answer(call: string, headers: Headers, text: string): void {
    const shown = [...headers].map((pair) => pair.join(': ')).join('\n');
    this.seen.push({ where: `the answer to ${call}`, text: `${shown}\n${this.withoutShown(headers, text)}` });
  }

  /** Where which secret is to be read; empty: nowhere. */
  leaks(): string[] {
    return this.seen.flatMap(({ where, text }) =>
      [...this.secrets].filter((secret) => text.includes(secret)).map((secret) => `${where} holds ${secret}: ${text}`),
    );
  }

  /** Begins anew: the next test file has secrets of its own. */
  forget(): void {
    this.secrets.clear();
    this.seen.length = 0;
  }

  private add(secret: string): void {
    this.secrets.add(secret);
    this.secrets.add(JSON.stringify(secret).slice(1, -1)); // as a log line or an answer would write it
  }

  private withoutShown(headers: Headers, text: string): string {
    const isObject = /json/.test(headers.get('content-type') ?? '') && text.startsWith('{');
    if (headers.get('cache-control') !== 'no-store' || !isObject) return text;
    const { secret, ...rest } = JSON.parse(text) as { secret?: string };
    this.know(secret);
    return JSON.stringify(rest);
  }
}

/** Of the test file that is running. */
export const secretWatch = new SecretWatch();
