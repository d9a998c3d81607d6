import { canonicalName } from '../channels/filter-names.js';

/**
 * The values that subscriptions filter on, by canonical name, of a body as `parseNotification` writes it.
 * @param body null: it was erased
 * @returns undefined where there is no body, or one that was written otherwise
 */
export function characteristicsOf(body: string | null): ReadonlyMap<string, string> | undefined {
  if (body === null) return undefined;
  const { kenmerken } = JSON.parse(body) as { kenmerken?: Record<string, string> };
  return kenmerken && new Map(Object.entries(kenmerken).map(([name, value]) => [canonicalName(name), value]));
}
