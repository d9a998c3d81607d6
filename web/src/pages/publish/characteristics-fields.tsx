import { ActionIcon, Alert, Button, Fieldset, Group, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { TbPlus, TbTrash } from 'react-icons/tb';
import { useRef, type ReactNode } from 'react';
import { flushSync } from 'react-dom';
import { useFocusAfterRemoval } from '../../parts/focus-after-removal.ts';
import type { Draft, FieldName } from './draft.ts';
import { usePublishTexts } from './texts.ts';

interface Props {
  filterNames: readonly string[];
  draft: Draft;
  change: (changes: Partial<Draft>) => void;
  errorOf: (field: FieldName) => ReactNode;
}

/** A field for each name that the channel can be filtered on, and pairs of what else is sent. */
export function CharacteristicsFields({ filterNames, draft: { filters, more }, change, errorOf }: Props) {
  const t = usePublishTexts();
  const adds = useRef<HTMLButtonElement>(null);
  const { list: rows, removing } = useFocusAfterRemoval<HTMLDivElement>('pair', more.length, () =>
    adds.current?.focus(),
  );
  const setPair = (index: number, pair: Partial<{ name: string; value: string }>) =>
    change({ more: more.map((each, nr) => (nr === index ? { ...each, ...pair } : each)) });
  const add = () => {
    // At once: its fields are there when they are looked for.
    flushSync(() => change({ more: [...more, { name: '', value: '' }] }));
    rows.current?.querySelector<HTMLElement>('[data-pair]:last-child input')?.focus();
  };
  return (
    <Fieldset legend={t('characteristics')} radius="md">
      <Stack gap="sm">
        <Text size="xs" c="dimmed">
          {filterNames.length === 0 ? t('noFilters') : t('filtersDetail')}
        </Text>
        {filterNames.length > 0 && (
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
            {filterNames.map((name) => (
              <TextInput
                key={name}
                label={<span className="anywhere">{name}</span>}
                name={`filters.${name}`}
                value={filters[name] ?? ''}
                error={errorOf(`filters.${name}`)}
                onChange={(event) => change({ filters: { ...filters, [name]: event.currentTarget.value } })}
                autoComplete="off"
              />
            ))}
          </SimpleGrid>
        )}
        <Stack gap="xs" ref={rows}>
          {more.map((pair, index) => (
            // A row has no name of its own yet: its place is what it is.
            <Group key={index} data-pair gap="xs" align="flex-start" wrap="nowrap">
              <TextInput
                aria-label={t('nameOf', { number: index + 1 })}
                placeholder={t('name')}
                value={pair.name}
                onChange={(event) => setPair(index, { name: event.currentTarget.value })}
                style={{ flex: 1, minWidth: 0 }}
                autoComplete="off"
              />
              <TextInput
                aria-label={t('valueOf', { number: index + 1 })}
                placeholder={t('value')}
                name={`more.${index}`}
                value={pair.value}
                error={errorOf(`more.${index}`)}
                onChange={(event) => setPair(index, { value: event.currentTarget.value })}
                style={{ flex: 1, minWidth: 0 }}
                autoComplete="off"
              />
              <ActionIcon
                variant="subtle"
                color="gray"
                size="input-sm"
                aria-label={t('removeCharacteristic', { number: index + 1 })}
                data-removes="pair"
                onClick={() => {
                  removing(index);
                  change({ more: more.filter((_, nr) => nr !== index) });
                }}
              >
                <TbTrash size={16} aria-hidden />
              </ActionIcon>
            </Group>
          ))}
        </Stack>
        {errorOf('more') && (
          <Alert color="red" variant="light" p="xs" role="alert">
            {errorOf('more')}
          </Alert>
        )}
        <Group gap="sm">
          <Button ref={adds} variant="default" size="xs" leftSection={<TbPlus size={14} aria-hidden />} onClick={add}>
            {t('addCharacteristic')}
          </Button>
          {more.length > 0 && filterNames.length > 0 && (
            <Text size="xs" c="dimmed">
              {t('moreDetail')}
            </Text>
          )}
        </Group>
      </Stack>
    </Fieldset>
  );
}
