import { useFormat } from '../i18n/format.ts';
import { useDeliveryStateTexts } from '../parts/delivery-state.tsx';
import { useErrorClassTexts } from '../parts/error-class.ts';
import { useNamed } from '../parts/subscriptions.ts';
import type { Selection } from './selection.ts';
import { useSelectionTexts } from './texts.ts';

/** More subscriptions are only counted. */
const mostNamed = 2;

/** In one line, what a selection means. */
export function useShortSelection({ groups, deliveries, everythingFor, ...selection }: Selection): string {
  const t = useSelectionTexts();
  const errorName = useErrorClassTexts();
  const stateName = useDeliveryStateTexts();
  const format = useFormat();
  const subscriptions = selection.subscriptions ?? [];
  const group = groups?.length === 1 ? groups[0] : undefined;
  const named = useNamed(
    everythingFor ? [everythingFor] : group ? [group.subscriptionId] : subscriptions.slice(0, mostNamed),
  );
  const nameOf = (id: string) => named(id)?.callbackUrl.replace(/^https?:\/\//, '') ?? id.slice(0, 8);
  const { notification } = selection;
  const ofNotification = notification !== undefined && `${t('notification')} …${notification.slice(-12)}`;
  if (everythingFor)
    return [`${t('everythingFor')}: ${nameOf(everythingFor)}`, ofNotification].filter(Boolean).join(' · ');
  const parts = [
    selection.all && t('everything'),
    subscriptions.length <= mostNamed
      ? subscriptions.map(nameOf).join(', ')
      : `${nameOf(subscriptions[0]!)} + ${subscriptions.length - 1}`,
    group
      ? `${nameOf(group.subscriptionId)}: ${errorName(group.errorClass)}`
      : groups && t('groupCount', { count: groups.length, shown: format.number(groups.length) }),
    deliveries && t('deliveryCount', { count: deliveries.length, shown: format.number(deliveries.length) }),
    ofNotification,
    selection.replay && `${t('replay')} …${selection.replay.slice(-12)}`,
    selection.channels?.join(', '),
    selection.errorClasses?.map((each) => errorName(each)).join(', '),
    !groups && selection.states?.map((each) => stateName(each)).join(', '),
    selection.acceptedFrom && `≥ ${format.time(selection.acceptedFrom)}`,
    selection.acceptedTo && `< ${format.time(selection.acceptedTo)}`,
  ];
  return parts.filter(Boolean).join(' · ');
}
