import { allOf, longestSearch, stringifySearch, useUrlState, type UrlState } from '../../parts/url-state.ts';
import { deliveryOf, idOfDelivery, idOfGroup, type DeliveryKey, type Group } from '../../selection/selection.ts';

/** A selection that was made in another list would mean something else. */
export const noChoice = { group: undefined, delivery: undefined };

/** In an address; no group and no delivery takes more. */
const bytesOfOne = 100;

export interface Choice {
  deliveries: DeliveryKey[];
  /** The address has no room for another one. */
  isFull: boolean;
  hasGroup(group: Group): boolean;
  hasDelivery(key: DeliveryKey): boolean;
  /** As many as there is room for. */
  setGroups(groups: readonly Group[], isChosen: boolean): void;
  setDelivery(key: DeliveryKey, isChosen: boolean): void;
  clear(): void;
}

/** The selection stands in the address, as everything else. */
export function useChoice(): Choice {
  const [state, set] = useUrlState();
  const groupIds = new Set(allOf(state['group']));
  const deliveryIds = new Set(allOf(state['delivery']));
  const deliveries = [...deliveryIds].flatMap((id) => deliveryOf(id) ?? []);
  const change = (name: 'group' | 'delivery', ids: readonly string[], isChosen: boolean) =>
    set({ [name]: isChosen ? adding(state, name, ids) : allOf(state[name]).filter((id) => !ids.includes(id)) });
  return {
    deliveries,
    isFull: isFull(state),
    hasGroup: (group) => groupIds.has(idOfGroup(group)),
    hasDelivery: (key) => deliveryIds.has(idOfDelivery(key)),
    setGroups: (some, isChosen) => change('group', some.map(idOfGroup), isChosen),
    setDelivery: (key, isChosen) => change('delivery', [idOfDelivery(key)], isChosen),
    clear: () => set(noChoice),
  };
}

const roomIn = (state: UrlState): number => longestSearch - stringifySearch(state).length;

export const isFull = (state: UrlState): boolean => roomIn(state) < bytesOfOne;

/**
 * Those of the address and those given, as many as it has room for: one that is longer could not be loaded, nor be sent
 * to a colleague.
 */
export function adding(state: UrlState, name: 'group' | 'delivery', ids: readonly string[]): string[] {
  const all = new Set(allOf(state[name]));
  let room = roomIn(state);
  for (const id of ids) {
    const bytes = stringifySearch({ [name]: id }).length;
    if (all.has(id) || bytes > room) continue;
    all.add(id);
    room -= bytes;
  }
  return [...all];
}
