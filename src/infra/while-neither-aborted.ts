/**
 * Runs `work` with a signal that is aborted when one of the two is. Nothing of it is left in one that lives as long as
 * the process, as `AbortSignal.any` would leave it (nodejs/node#55351).
 */
export async function whileNeitherAborted<T>(
  one: AbortSignal,
  other: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const either = new AbortController();
  const abort = ({ target }: Pick<Event, 'target'>) => either.abort((target as AbortSignal).reason);
  const signals = [one, other];
  try {
    for (const signal of signals) {
      signal.addEventListener('abort', abort);
      if (signal.aborted) abort({ target: signal });
    }
    return await work(either.signal);
  } finally {
    for (const signal of signals) signal.removeEventListener('abort', abort);
  }
}
