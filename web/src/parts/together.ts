interface Asker<T> {
  resolve: (found: T | null) => void;
  reject: (error: unknown) => void;
}

/** Of one request of the API. */
const mostTogether = 100;
const togetherWithinMs = 20;

/**
 * Joins questions that rows on the screen ask one by one, and the API answers for many at once.
 * @param read those of the ids that there are
 * @returns reads one, together with all others that are asked for at about the same time; null: there is none
 */
export function together<T>(read: (ids: string[]) => Promise<Map<string, T>>): (id: string) => Promise<T | null> {
  const waiting = new Map<string, Asker<T>[]>();
  const readAll = async () => {
    const asked = [...waiting];
    waiting.clear();
    for (let at = 0; at < asked.length; at += mostTogether) {
      const some = asked.slice(at, at + mostTogether);
      try {
        const found = await read(some.map(([id]) => id));
        for (const [id, askers] of some) for (const { resolve } of askers) resolve(found.get(id) ?? null);
      } catch (error) {
        for (const [, askers] of some) for (const { reject } of askers) reject(error);
      }
    }
  };
  return (id) =>
    new Promise((resolve, reject) => {
      if (waiting.size === 0) setTimeout(() => void readAll(), togetherWithinMs);
      waiting.set(id, [...(waiting.get(id) ?? []), { resolve, reject }]);
    });
}

/** Until the next full step of the clock: rows that came at different times ask at the same one, and so together. */
export function untilNextStep(everyMs: number): number {
  const left = everyMs - (Date.now() % everyMs);
  return left < everyMs / 10 ? left + everyMs : left;
}
