import { useQuery } from '@tanstack/react-query';
import { applicationsQuery, channelsQuery } from '../../parts/catalogue.ts';
import { deliveryStates, useDeliveryStateTexts } from '../../parts/delivery-state.tsx';
import { errorClasses, useErrorClassTexts, type ErrorClass } from '../../parts/error-class.ts';
import { useNamed, useSubscriptionsWith } from '../../parts/subscriptions.ts';
import { escapedName, type Criterion, type Filter } from './criteria.ts';
import { useSearchTexts } from './search-texts.ts';
import { useFormat } from '../../i18n/format.ts';

export interface Suggestion {
  value: string;
  label: string;
  detail?: string;
}

const actions = ['create', 'update', 'partial_update', 'destroy'];
const statuses = ['400', '401', '403', '404', '410', '429', '500', '502', '503', '504'];
/** A time that was chosen as so long ago is kept as the time that it is: the address means the same tomorrow. */
export const agos = [
  ['minutes15', 15 * 60_000],
  ['hour', 3_600_000],
  ['day', 86_400_000],
  ['week', 604_800_000],
] as const;
/** More of them help nobody; typing narrows them. */
const mostShown = 50;

/** Values for one criterion that fit what has been typed so far. */
export function useSuggestions(criterion: Criterion | undefined, typed: string): Suggestion[] {
  const stateText = useDeliveryStateTexts();
  const errorText = useErrorClassTexts();
  const channels =
    useQuery({ ...channelsQuery, enabled: criterion === 'channel' || criterion === 'characteristic' }).data ?? [];
  const subscriptions = useSubscriptionsWith(typed, criterion === 'subscription').found;
  const applications =
    useQuery({ ...applicationsQuery, enabled: criterion === 'publisher' || criterion === 'owner' }).data ?? [];
  const all = (): Suggestion[] => {
    switch (criterion) {
      case 'channel':
        return channels.map(({ name }) => ({ value: name, label: name }));
      case 'characteristic':
        return [...new Set(channels.flatMap(({ filters }) => filters))].map((name) => ({
          value: `${escapedName(name)}:`,
          label: `${name}:`,
        }));
      case 'publisher':
      case 'owner':
        return applications.map(({ clientId, label }) => ({ value: clientId, label: clientId, detail: label }));
      case 'state':
        return deliveryStates.map((value) => ({ value, label: stateText(value) }));
      case 'errorClass':
        return errorClasses.map((value) => ({ value, label: errorText(value), detail: value }));
      case 'action':
        return actions.map((value) => ({ value, label: value }));
      case 'lastStatus':
        return statuses.map((value) => ({ value, label: value }));
      default:
        return [];
    }
  };
  // The server has looked for it, also in what is not shown.
  if (criterion === 'subscription')
    return subscriptions.map(({ id, callbackUrl, ownerClientId }) => ({
      value: id,
      label: callbackUrl,
      detail: ownerClientId,
    }));
  const sought = typed.trim().toLowerCase();
  return all()
    .filter(({ value, label, detail = '' }) => `${value} ${label} ${detail}`.toLowerCase().includes(sought))
    .slice(0, mostShown);
}

/**
 * A filter in the words of the user.
 * @param subscriptions their ids, of the filters there are
 */
export function useFilterText(subscriptions: readonly string[]): (filter: Filter) => { name: string; value: string } {
  const t = useSearchTexts();
  const stateText = useDeliveryStateTexts();
  const errorText = useErrorClassTexts();
  const format = useFormat();
  const named = useNamed(subscriptions);
  return ({ criterion, value }) => {
    const name = t(criterion).replace(/ \(.*\)$|,.*$/, '');
    const isIn = (known: readonly string[]) => known.includes(value);
    if (criterion === 'unmatched') return { name, value: '' };
    if (criterion === 'state' && isIn(deliveryStates))
      return { name, value: stateText(value as (typeof deliveryStates)[number]) };
    if (criterion === 'errorClass' && isIn(errorClasses)) return { name, value: errorText(value as ErrorClass) };
    if (criterion === 'acceptedFrom' || criterion === 'acceptedTo') {
      const isTime = !Number.isNaN(new Date(value).getTime());
      return { name, value: isTime ? format.time(value) : value };
    }
    if (criterion === 'subscription') return { name, value: named(value)?.callbackUrl ?? value };
    return { name, value };
  };
}
