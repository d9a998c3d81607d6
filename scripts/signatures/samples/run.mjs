// Answers calls by the example of docs/receiving.md that lies beside it.
import { createInterface } from 'node:readline';

/** @type {{ isGenuine: (key: string, headers: Record<string, string>, body: Buffer) => boolean }} */
const { isGenuine } = await import(`file://${process.cwd()}/example.mjs`);
const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];

for await (const line of createInterface({ input: process.stdin })) {
  const [key = '', ...rest] = line.split('\t');
  const body = Buffer.from(rest.pop() ?? '', 'base64');
  const headers = Object.fromEntries(names.flatMap((name, nr) => (rest[nr] === '-' ? [] : [[name, rest[nr] ?? '']])));
  let answer = false;
  try {
    answer = isGenuine(key, headers, body);
  } catch {
    // A verifier that throws does not accept.
  }
  console.log(answer ? 'accepted' : 'refused');
}
