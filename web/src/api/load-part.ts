import { consoleRoot } from './client.ts';

/** A file of the console is not there any more: another version was installed since the page was loaded. */
export class OtherVersion extends Error {
  constructor(cause: unknown) {
    super('Another version was installed', { cause });
  }
}

const longestWaitMs = 10_000;
/** An answer may have been lost just then. */
const triesWhileAnswering = 3;

/**
 * Code of the console that comes when it is first needed. While Heraut does not answer it is asked for again, as data
 * are: a failure would take the page away, with what was typed.
 * @throws {OtherVersion} where Heraut answers, and not with this
 */
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  let refused = 0;
  for (let failures = 0; ; failures++) {
    try {
      return await load();
    } catch (error) {
      if (await doesAnswer()) refused += 1;
      if (refused === triesWhileAnswering) throw new OtherVersion(error);
      await new Promise((resolve) => setTimeout(resolve, Math.min(500 * 2 ** failures, longestWaitMs)));
    }
  }
}

async function doesAnswer(): Promise<boolean> {
  try {
    return (await fetch(new URL('assets/heraut.svg', consoleRoot), { cache: 'no-store' })).ok;
  } catch {
    return false;
  }
}
