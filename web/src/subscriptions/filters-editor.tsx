import {
  ActionIcon,
  Autocomplete,
  Button,
  Fieldset,
  Group,
  Select,
  Stack,
  Text,
  TextInput,
  Tooltip,
} from '@mantine/core';
import { TbPlus, TbTrash } from 'react-icons/tb';
import { useQuery } from '@tanstack/react-query';
import { useRef } from 'react';
import { channelsQuery } from '../parts/catalogue.ts';
import { defineTexts } from '../i18n/i18n.ts';
import { useFocusAfterRemoval } from '../parts/focus-after-removal.ts';
import { type Channel } from './data.ts';
import { nextKey, type EntryDraft } from './filter-drafts.ts';

const useTexts = defineTexts(
  'filters-editor',
  {
    entry: 'Entry {{number}}',
    channel: 'Channel',
    channelPlaceholder: 'Choose a channel',
    noChannels: 'No such channel',
    everything: 'Everything of this channel.',
    name: 'Characteristic',
    value: 'Value, or * for any',
    equals: 'is',
    addFilter: 'Add a filter',
    removeFilter: 'Remove the filter on {{name}}',
    addEntry: 'Add another entry',
    removeEntry: 'Remove entry {{number}}',
    alternatives: 'Entries are alternatives: a notification that meets any of them is delivered, once.',
    and: 'All filters of an entry have to fit. A filter on a characteristic that a notification does not have is passed over.',
    none: 'No entry: it gets nothing.',
  },
  {
    entry: 'Regel {{number}}',
    channel: 'Kanaal',
    channelPlaceholder: 'Kies een kanaal',
    noChannels: 'Zo’n kanaal is er niet',
    everything: 'Alles van dit kanaal.',
    name: 'Kenmerk',
    value: 'Waarde, of * voor elke',
    equals: 'is',
    addFilter: 'Filter toevoegen',
    removeFilter: 'Verwijder het filter op {{name}}',
    addEntry: 'Nog een regel toevoegen',
    removeEntry: 'Verwijder regel {{number}}',
    alternatives: 'Regels zijn alternatieven: een notificatie die aan een ervan voldoet, wordt afgeleverd, één keer.',
    and: 'Alle filters van een regel moeten passen. Een filter op een kenmerk dat een notificatie niet heeft, telt niet mee.',
    none: 'Geen regel: het krijgt niets.',
  },
);

interface Props {
  value: readonly EntryDraft[];
  onChange: (value: EntryDraft[]) => void;
  isReadOnly?: boolean;
}

/** The filters of a subscription: channels, and the values that characteristics must have. */
export function FiltersEditor({ value, onChange, isReadOnly = false }: Props) {
  const t = useTexts();
  const { data: channels = [] } = useQuery(channelsQuery);
  const put = (index: number, entry: EntryDraft) => onChange(value.map((each, at) => (at === index ? entry : each)));
  const adds = useRef<HTMLButtonElement>(null);
  const { list, removing } = useFocusAfterRemoval<HTMLDivElement>('entry', value.length, () => adds.current?.focus());
  return (
    <Stack ref={list} gap="md">
      <Text size="sm" c="dimmed">
        {value.length === 0 ? t('none') : `${t('alternatives')} ${t('and')}`}
      </Text>
      {value.map((entry, index) => (
        <Entry
          key={entry.key}
          number={index + 1}
          entry={entry}
          channels={channels}
          isReadOnly={isReadOnly}
          onChange={(changed) => put(index, changed)}
          onRemove={() => {
            removing(index);
            onChange(value.filter((_, at) => at !== index));
          }}
        />
      ))}
      {!isReadOnly && (
        <Group>
          <Button
            ref={adds}
            variant="default"
            size="sm"
            leftSection={<TbPlus size={16} aria-hidden />}
            onClick={() => onChange([...value, { key: nextKey(), channel: '', filters: [] }])}
          >
            {t('addEntry')}
          </Button>
        </Group>
      )}
    </Stack>
  );
}

interface EntryProps {
  number: number;
  entry: EntryDraft;
  channels: readonly Channel[];
  isReadOnly: boolean;
  onChange: (entry: EntryDraft) => void;
  onRemove: () => void;
}

function Entry({ number, entry, channels, isReadOnly, onChange, onRemove }: EntryProps) {
  const t = useTexts();
  const known = channels.find(({ name }) => name === entry.channel)?.filters ?? [];
  // One that is there already is shown, also where this page has not loaded the channels yet.
  const names = [...new Set([...channels.map(({ name }) => name), ...(entry.channel ? [entry.channel] : [])])];
  const put = (index: number, changed: { name?: string; value?: string }) =>
    onChange({
      ...entry,
      filters: entry.filters.map((each, at) => (at === index ? { ...each, ...changed } : each)),
    });
  const { filters } = entry;
  const adds = useRef<HTMLButtonElement>(null);
  const { list, removing } = useFocusAfterRemoval<HTMLDivElement>('filter', filters.length, () =>
    adds.current?.focus(),
  );
  return (
    <Fieldset legend={t('entry', { number })}>
      <Stack ref={list} gap="xs">
        <Group align="flex-end" wrap="nowrap">
          <Select
            label={t('channel')}
            placeholder={t('channelPlaceholder')}
            data={names}
            value={entry.channel || null}
            searchable
            limit={100}
            nothingFoundMessage={t('noChannels')}
            allowDeselect={false}
            readOnly={isReadOnly}
            onChange={(channel) => onChange({ ...entry, channel: channel ?? '' })}
            style={{ flex: 1, minWidth: 0 }}
          />
          {!isReadOnly && (
            <Tooltip label={t('removeEntry', { number })}>
              <ActionIcon
                variant="subtle"
                color="gray"
                size={36}
                aria-label={t('removeEntry', { number })}
                data-removes="entry"
                onClick={onRemove}
              >
                <TbTrash size={18} aria-hidden />
              </ActionIcon>
            </Tooltip>
          )}
        </Group>
        {entry.filters.length === 0 && entry.channel !== '' && (
          <Text size="sm" c="dimmed">
            {t('everything')}
          </Text>
        )}
        {entry.filters.map((filter, index) => (
          <Group key={filter.key} gap="xs" wrap="nowrap" align="center">
            <Autocomplete
              aria-label={t('name')}
              placeholder={t('name')}
              data={known}
              value={filter.name}
              readOnly={isReadOnly}
              onChange={(name) => put(index, { name })}
              style={{ flex: 1, minWidth: 0 }}
            />
            <Text size="sm" c="dimmed">
              {t('equals')}
            </Text>
            <TextInput
              aria-label={filter.name === '' ? t('value') : `${filter.name}: ${t('value')}`}
              placeholder={t('value')}
              value={filter.value}
              readOnly={isReadOnly}
              onChange={(event) => put(index, { value: event.currentTarget.value })}
              style={{ flex: 2, minWidth: 0 }}
            />
            {!isReadOnly && (
              <ActionIcon
                variant="subtle"
                color="gray"
                size="lg"
                aria-label={t('removeFilter', { name: filter.name || String(index + 1) })}
                data-removes="filter"
                onClick={() => {
                  removing(index);
                  onChange({ ...entry, filters: filters.filter((_, at) => at !== index) });
                }}
              >
                <TbTrash size={16} aria-hidden />
              </ActionIcon>
            )}
          </Group>
        ))}
        {!isReadOnly && entry.channel !== '' && (
          <Group>
            <Button
              ref={adds}
              variant="subtle"
              size="compact-sm"
              leftSection={<TbPlus size={14} aria-hidden />}
              onClick={() => {
                const free = known.find((name) => !entry.filters.some((each) => each.name === name)) ?? '';
                onChange({
                  ...entry,
                  filters: [...entry.filters, { key: nextKey(), name: free, value: '' }],
                });
              }}
            >
              {t('addFilter')}
            </Button>
          </Group>
        )}
      </Stack>
    </Fieldset>
  );
}
