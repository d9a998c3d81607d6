import { canonicalName, outgoingName } from '../channels/filter-names.js';

type Kenmerken = Readonly<Record<string, string>>;

/**
 * The values that subscriptions filter on, by canonical name, of a body as `parseNotification` writes it.
 * @param body null: it was erased
 * @returns undefined where there is no body, or one that was written otherwise
 */
export function characteristicsOf(body: string | null): ReadonlyMap<string, string> | undefined {
  const kenmerken = kenmerkenOf(body);
  return kenmerken && asJudged(kenmerken);
}

/** As they were sent. Parameter and undefined as above. */
export const kenmerkenOf = (body: string | null): Kenmerken | undefined =>
  body === null ? undefined : (JSON.parse(body) as { kenmerken?: Kenmerken }).kenmerken;

/**
 * By the names that they had when they were published. A name that was sent as `puntXY` may have been `punt_x_y` or
 * `puntXY`, which is `punt_xy`: it stands under both, except where another one has been that for certain.
 */
export function asJudged(kenmerken: Kenmerken): ReadonlyMap<string, string> {
  const judged = new Map<string, string>();
  const uncertain: [names: string[], value: string][] = [];
  for (const [sent, value] of Object.entries(kenmerken)) {
    const asSpelled = canonicalName(sent);
    const asSnake = snakeOf(sent);
    if (asSnake === undefined || asSnake === asSpelled) judged.set(asSpelled, value);
    else uncertain.push([[asSpelled, asSnake], value]);
  }
  const certain = new Set(judged.keys());
  for (const [names, value] of uncertain) for (const name of names) if (!certain.has(name)) judged.set(name, value);
  return judged;
}

/** The canonical name of the one in snake_case that is sent like this; undefined: none is, or none of another name. */
function snakeOf(sent: string): string | undefined {
  if (!/[A-Z]{2}/.test(sent)) return undefined;
  const snake = sent.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return outgoingName(snake) === sent ? canonicalName(snake) : undefined;
}
