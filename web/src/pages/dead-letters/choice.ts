import { allOf, useUrlState } from '../../parts/url-state.ts';
import { deliveryOf, idOfDelivery, idOfGroup, type DeliveryKey, type Group } from '../../selection/selection.ts';

/** A selection that was made in another list would mean something else. */
export const noChoice = { group: undefined, delivery: undefined };

/** As many as one selection of the API names. */
export const mostChosen = 500;

export interface Choice {
  deliveries: DeliveryKey[];
  hasGroup(group: Group): boolean;
  hasDelivery(key: DeliveryKey): boolean;
  setGroups(groups: readonly Group[], isChosen: boolean): void;
  setDelivery(key: DeliveryKey, isChosen: boolean): void;
  clear(): void;
}

/** What is selected stands in the address, as everything else. */
export function useChoice(): Choice {
  const [state, set] = useUrlState();
  const groupIds = new Set(allOf(state['group']));
  const deliveryIds = new Set(allOf(state['delivery']));
  const deliveries = [...deliveryIds].flatMap((id) => deliveryOf(id) ?? []);
  const change = (ids: Set<string>, changed: readonly string[], isChosen: boolean): string[] => {
    for (const id of changed) {
      if (isChosen) ids.add(id);
      else ids.delete(id);
    }
    return [...ids].slice(0, mostChosen);
  };
  return {
    deliveries,
    hasGroup: (group) => groupIds.has(idOfGroup(group)),
    hasDelivery: (key) => deliveryIds.has(idOfDelivery(key)),
    setGroups: (some, isChosen) => set({ group: change(groupIds, some.map(idOfGroup), isChosen) }),
    setDelivery: (key, isChosen) => set({ delivery: change(deliveryIds, [idOfDelivery(key)], isChosen) }),
    clear: () => set(noChoice),
  };
}
