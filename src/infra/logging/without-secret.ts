/** Shorter ones are ordinary words, and their absence would tell more than they do. */
export const shortestSecret = 8;
const censored = '[secret]';

/** The text without a secret, also where that was cut off at the end of the text. */
export function withoutSecret(text: string, secret: string): string {
  if (secret.length < shortestSecret) return text;
  const clean = text.replaceAll(secret, censored);
  const last = clean.at(-1);
  for (let length = Math.min(secret.length - 1, clean.length); length >= shortestSecret; length--)
    if (secret[length - 1] === last && clean.endsWith(secret.slice(0, length)))
      return clean.slice(0, -length) + censored;
  return clean;
}
