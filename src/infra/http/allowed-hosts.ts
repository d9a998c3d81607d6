/**
 * Whether a request may name a host (setting ALLOWED_HOSTS). An attacker that could choose it would have URLs of its
 * own in answers that a cache keeps, or, by a name of its own that leads here, read from a browser what needs no token.
 */
export class AllowedHosts {
  private readonly exact: Set<string>;
  readonly isAny: boolean;
  /** With the dot in front, so that `evil-example.org` is not below `example.org`. */
  private readonly suffixes: string[];
  /** The one to build URLs from where a request names none of them. */
  readonly first: string | undefined;

  /**
   * @param patterns `example.org` (any port), `example.org:8443`, `*.example.org`, `.example.org` (both, as Django has
   *   it); none, or `*`: any host is allowed
   */
  constructor(patterns: readonly string[]) {
    const lower = patterns.map((pattern) => pattern.toLowerCase());
    this.isAny = lower.length === 0 || lower.includes('*');
    this.exact = new Set(
      lower.filter((pattern) => !pattern.startsWith('*')).map((pattern) => pattern.replace(/^\./, '')),
    );
    this.suffixes = lower.filter((pattern) => /^\*?\./.test(pattern)).map((pattern) => pattern.replace('*', ''));
    [this.first] = this.exact;
  }

  /** @param host as `Host` or `X-Forwarded-Host` has it, with its port */
  has(host: string): boolean {
    if (this.isAny) return true;
    const lower = host.toLowerCase();
    const name = lower.replace(/:\d*$/, '');
    if (this.exact.has(lower) || this.exact.has(name)) return true;
    return this.suffixes.some((suffix) => lower.endsWith(suffix) || name.endsWith(suffix));
  }
}
