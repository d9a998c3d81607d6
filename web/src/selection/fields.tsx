import { MultiSelect, Select } from '@mantine/core';
import { useNamesToChoose } from '../parts/catalogue.ts';
import { namedWithChosen } from '../parts/chosen-options.ts';
import { useDeliveryStateTexts, type DeliveryState } from '../parts/delivery-state.tsx';
import { errorClasses, useErrorClassTexts, type ErrorClass } from '../parts/error-class.ts';
import { useSubscriptionChoice } from '../parts/subscription-choice.ts';
import { useSelectionTexts } from './texts.ts';

/** More are not shown at once; typing narrows them. */
const mostShown = 50;

interface One<T extends string = string> {
  value: T | undefined;
  onChange: (value: T | undefined) => void;
}
interface Several<T extends string = string> {
  value: T[];
  onChange: (value: T[]) => void;
}

const useSubscriptionField = (chosen: readonly string[]) => {
  const t = useSelectionTexts();
  const { field, isLoading } = useSubscriptionChoice(chosen, ({ callbackUrl }) =>
    callbackUrl.replace(/^https?:\/\//, ''),
  );
  return { ...field, nothingFoundMessage: isLoading ? '…' : t('nothingFound') };
};

const useChannelField = (chosen: readonly string[]) => {
  const t = useSelectionTexts();
  const { names, isLoading, onDropdownOpen } = useNamesToChoose('channels');
  return {
    data: namedWithChosen(names, (name) => name, chosen),
    onDropdownOpen,
    searchable: true,
    limit: mostShown,
    clearable: true,
    nothingFoundMessage: isLoading ? '…' : t('nothingFound'),
  };
};

export function SubscriptionField({ value, onChange, label }: One & { label?: string }) {
  const t = useSelectionTexts();
  const field = useSubscriptionField(value === undefined ? [] : [value]);
  return (
    <Select
      {...field}
      label={label ?? t('subscription')}
      placeholder={label === undefined ? t('anySubscription') : undefined}
      value={value ?? null}
      onChange={(next) => onChange(next ?? undefined)}
    />
  );
}

export function SubscriptionsField({ value, onChange }: Several) {
  const t = useSelectionTexts();
  const field = useSubscriptionField(value);
  return (
    <MultiSelect
      {...field}
      label={t('subscriptions')}
      placeholder={value.length === 0 ? t('anySubscription') : undefined}
      value={value}
      onChange={onChange}
    />
  );
}

export function ChannelField({ value, onChange }: One) {
  const t = useSelectionTexts();
  const field = useChannelField(value === undefined ? [] : [value]);
  return (
    <Select
      {...field}
      label={t('channel')}
      placeholder={t('anyChannel')}
      value={value ?? null}
      onChange={(next) => onChange(next ?? undefined)}
    />
  );
}

export function ChannelsField({ value, onChange }: Several) {
  const t = useSelectionTexts();
  const field = useChannelField(value);
  return (
    <MultiSelect
      {...field}
      label={t('channels')}
      placeholder={value.length === 0 ? t('anyChannel') : undefined}
      value={value}
      onChange={onChange}
    />
  );
}

export function ErrorField({ value, onChange }: One<ErrorClass>) {
  const t = useSelectionTexts();
  const nameOf = useErrorClassTexts();
  return (
    <Select
      clearable
      label={t('error')}
      placeholder={t('anyError')}
      data={namedWithChosen(errorClasses, nameOf, value === undefined ? [] : [value])}
      value={value ?? null}
      onChange={(next) => onChange((next ?? undefined) as ErrorClass | undefined)}
    />
  );
}

export function ErrorsField({ value, onChange }: Several<ErrorClass>) {
  const t = useSelectionTexts();
  const nameOf = useErrorClassTexts();
  return (
    <MultiSelect
      clearable
      label={t('errors')}
      placeholder={value.length === 0 ? t('anyError') : undefined}
      data={namedWithChosen(errorClasses, nameOf, value)}
      value={value}
      onChange={(next) => onChange(next as ErrorClass[])}
    />
  );
}

export function StateField({ value, onChange, states }: One<DeliveryState> & { states: readonly DeliveryState[] }) {
  const t = useSelectionTexts();
  const nameOf = useDeliveryStateTexts();
  return (
    <Select
      clearable
      label={t('state')}
      placeholder={t('anyState')}
      data={namedWithChosen(states, nameOf, value === undefined ? [] : [value])}
      value={value ?? null}
      onChange={(next) => onChange((next ?? undefined) as DeliveryState | undefined)}
    />
  );
}
