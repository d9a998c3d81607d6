import {
  Autocomplete,
  Code,
  Collapse,
  Group,
  Select,
  SimpleGrid,
  Stack,
  TextInput,
  UnstyledButton,
} from '@mantine/core';
import { TbChevronDown, TbChevronRight } from 'react-icons/tb';
import { useId, useState, type ReactNode } from 'react';
import { useFormat } from '../../i18n/format.ts';
import { momentOf, otherMomentOf } from '../../parts/moment.ts';
import { useTimeFieldTexts } from '../../parts/time-field.tsx';
import { CharacteristicsFields } from './characteristics-fields.tsx';
import type { Draft, FieldName } from './draft.ts';
import { usePublishTexts } from './texts.ts';

interface Props {
  channels: readonly { name: string; filters: readonly string[] }[];
  draft: Draft;
  change: (changes: Partial<Draft>) => void;
  errorOf: (field: FieldName) => ReactNode;
}

/** Of channels in the list at once; a user who wants another types more of its name. */
const mostListed = 100;
const termFields = ['createdAt', 'deliverAfter', 'key', 'source'] as const;

export function DraftForm({ channels, draft, change, errorOf }: Props) {
  const t = usePublishTexts();
  const timeTexts = useTimeFieldTexts();
  const format = useFormat();
  const filterNames = channels.find(({ name }) => name === draft.channel)?.filters ?? [];
  const field = (name: Exclude<FieldName, 'more' | `filters.${string}` | `more.${number}`>) => ({
    name,
    value: draft[name],
    error: errorOf(name),
    autoComplete: 'off',
  });
  const text = (name: 'mainObject' | 'resource' | 'resourceUrl' | (typeof termFields)[number]) => ({
    ...field(name),
    onChange: (event: React.ChangeEvent<HTMLInputElement>) => change({ [name]: event.currentTarget.value }),
  });
  const time = (name: 'createdAt' | 'deliverAfter') => {
    const taken = momentOf(draft[name]);
    const isTwice = taken !== undefined && otherMomentOf(taken) !== undefined;
    return {
      ...text(name),
      type: 'datetime-local',
      step: 1,
      description: isTwice ? timeTexts('twice', { taken: format.time(taken) }) : t(`${name}Detail`),
    };
  };
  return (
    <Stack gap="md">
      <Select
        {...field('channel')}
        value={draft.channel || null}
        label={<Label of="kanaal">{t('channel')}</Label>}
        placeholder={t('chooseChannel')}
        nothingFoundMessage={t('noChannel')}
        data={channels.map(({ name }) => name)}
        limit={mostListed}
        onChange={(channel) => change({ channel: channel ?? '' })}
        searchable
        withAsterisk
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <Autocomplete
          {...field('action')}
          label={<Label of="actie">{t('action')}</Label>}
          data={['create', 'update', 'partial_update', 'destroy']}
          onChange={(action) => change({ action })}
          withAsterisk
        />
        <TextInput
          {...text('resource')}
          label={<Label of="resource">{t('resource')}</Label>}
          description={t('resourceDetail')}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          withAsterisk
        />
      </SimpleGrid>
      <TextInput
        {...text('mainObject')}
        label={<Label of="hoofdObject">{t('mainObject')}</Label>}
        description={t('mainObjectDetail')}
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        inputMode="url"
        placeholder="https://"
        withAsterisk
      />
      <TextInput
        {...text('resourceUrl')}
        label={<Label of="resourceUrl">{t('resourceUrl')}</Label>}
        description={t('resourceUrlDetail')}
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        inputMode="url"
        placeholder="https://"
        withAsterisk
      />
      {draft.channel !== '' && (
        <CharacteristicsFields filterNames={filterNames} draft={draft} change={change} errorOf={errorOf} />
      )}
      <Terms isWanted={termFields.some((name) => draft[name] !== '' || errorOf(name) !== undefined)}>
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm" pt="sm">
          <TextInput
            {...time('createdAt')}
            label={<Label of="aanmaakdatum">{t('createdAt')}</Label>}
            inputWrapperOrder={['label', 'input', 'description', 'error']}
          />
          <TextInput
            {...time('deliverAfter')}
            label={<Label of="Deliver-After">{t('deliverAfter')}</Label>}
            inputWrapperOrder={['label', 'input', 'description', 'error']}
          />
          <TextInput
            {...text('key')}
            label={<Label of="Idempotency-Key">{t('key')}</Label>}
            description={t('keyDetail')}
            inputWrapperOrder={['label', 'input', 'description', 'error']}
          />
          <TextInput {...text('source')} label={<Label of="source">{t('source')}</Label>} />
        </SimpleGrid>
      </Terms>
    </Stack>
  );
}

/** The word of the console, and the name in the request. */
const Label = ({ of, children }: { of: string; children: string }) => (
  <>
    {children} <Code fz={11}>{of}</Code>
  </>
);

/** Folded away until it is opened, or something in it is filled in or wrong. */
function Terms({ isWanted, children }: { isWanted: boolean; children: ReactNode }) {
  const t = usePublishTexts();
  const [isOpened, setOpened] = useState(false);
  const id = useId();
  const isOpen = isOpened || isWanted;
  return (
    <div>
      <UnstyledButton onClick={() => setOpened(!isOpen)} aria-expanded={isOpen} aria-controls={id} fz="sm" fw={500}>
        <Group gap={6}>
          {isOpen ? <TbChevronDown size={16} aria-hidden /> : <TbChevronRight size={16} aria-hidden />}
          {t('terms')}
        </Group>
      </UnstyledButton>
      <Collapse expanded={isOpen} id={id}>
        {children}
      </Collapse>
    </div>
  );
}
