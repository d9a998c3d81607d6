import { isOptionsGroup, type ComboboxParsedItem } from '@mantine/core';
import { useState } from 'react';
import type { components } from '../../generated/admin-api.d.ts';
import { useNamed, useSubscriptionsWith } from './subscriptions.ts';

interface Option {
  value: string;
  label: string;
}
type Subscription = components['schemas']['Subscription'];

/**
 * For a field in which subscriptions are chosen: those that are, and, once it is opened, those in which the server
 * finds the input. Each one that is chosen is there also where there is no such subscription, or the API does not know
 * the id: an address may have anything.
 */
export function useSubscriptionChoice(chosen: readonly string[], labelOf: (subscription: Subscription) => string) {
  const [isOpened, setOpened] = useState(false);
  const [typed, setTyped] = useState('');
  const named = useNamed(chosen);
  const ofChosen = chosen.map((id) => {
    const known = named(id);
    return { value: id, label: known ? labelOf(known) : id };
  });
  // A field shows the name of the one that is chosen as if it were typed.
  const isTyped = !ofChosen.some((each) => typed === each.label || typed === withId(each));
  const { found, isLoading } = useSubscriptionsWith(isTyped ? typed : '', isOpened);
  const others = found.filter(({ id }) => !chosen.includes(id));
  return {
    isLoading,
    field: {
      data: distinct([...ofChosen, ...others.map((each) => ({ value: each.id, label: labelOf(each) }))]),
      searchable: true,
      clearable: true,
      onSearchChange: setTyped,
      onDropdownOpen: () => setOpened(true),
      // The server has looked for it, also in what the name does not show.
      filter: ({ options }: { options: ComboboxParsedItem[] }) =>
        options.filter((each) => !isOptionsGroup(each) && found.some(({ id }) => id === each.value)),
    },
  };
}

const withId = ({ value, label }: Option) => `${label} · ${value.slice(0, 8)}`;

/** Two subscriptions may have one receiver. */
function distinct(options: Option[]): Option[] {
  const count = new Map<string, number>();
  for (const { label } of options) count.set(label, (count.get(label) ?? 0) + 1);
  return options.map((each) => (count.get(each.label) === 1 ? each : { ...each, label: withId(each) }));
}
