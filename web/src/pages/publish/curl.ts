export interface CurlRequest {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: object;
}

/**
 * The request as a command of a POSIX shell. Any input leaves the shell running nothing but curl: every value is in
 * single quotes, but for the token, which is a variable of the shell.
 */
export function curlOf({ url, headers, body }: CurlRequest): string {
  const lines = [
    `curl -sS -X POST ${quoted(url)}`,
    '-H "Authorization: Bearer $TOKEN"',
    ...Object.entries({ 'Content-Type': 'application/json', ...headers }).map(
      ([name, value]) => `-H ${quoted(`${name}: ${value}`)}`,
    ),
    // Not -d: of a text that begins with @ it would send the file of that name.
    `--data-raw ${quoted(JSON.stringify(body))}`,
  ];
  return lines.join(' \\\n  ');
}

/** One word of a POSIX shell, whatever its characters. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
