import { useQuery } from '@tanstack/react-query';
import { useFormat } from '../i18n/format.ts';
import { subscriptionsQuery } from '../parts/catalogue.ts';
import { useDeliveryStateTexts } from '../parts/delivery-state.tsx';
import { useErrorClassTexts } from '../parts/error-class.ts';
import type { Selection } from './selection.ts';
import { useSelectionTexts } from './texts.ts';

/** @returns a function that says in one line what a selection means */
export function useShortSelection(): (selection: Selection) => string {
  const t = useSelectionTexts();
  const errorName = useErrorClassTexts();
  const stateName = useDeliveryStateTexts();
  const format = useFormat();
  const { data } = useQuery(subscriptionsQuery);
  const nameOf = (id: string) =>
    data?.find((each) => each.id === id)?.callbackUrl.replace(/^https?:\/\//, '') ?? id.slice(0, 8);
  const named = (ids: readonly string[]) =>
    ids.length <= 2 ? ids.map(nameOf).join(', ') : `${nameOf(ids[0]!)} + ${ids.length - 1}`;
  return (selection) => {
    const { groups, deliveries, everythingFor } = selection;
    if (everythingFor) return `${t('everythingFor')}: ${nameOf(everythingFor)}`;
    const parts = [
      selection.all && t('everything'),
      selection.subscriptions && named(selection.subscriptions),
      groups &&
        (groups.length === 1
          ? `${nameOf(groups[0]!.subscriptionId)}: ${errorName(groups[0]!.errorClass)}`
          : t('groupCount', { count: groups.length, shown: format.number(groups.length) })),
      deliveries && t('deliveryCount', { count: deliveries.length, shown: format.number(deliveries.length) }),
      selection.channels?.join(', '),
      selection.errorClasses?.map((each) => errorName(each)).join(', '),
      !groups && selection.states?.map((each) => stateName(each)).join(', '),
      selection.acceptedFrom && `≥ ${format.time(selection.acceptedFrom)}`,
      selection.acceptedTo && `< ${format.time(selection.acceptedTo)}`,
    ];
    return parts.filter(Boolean).join(' · ');
  };
}
