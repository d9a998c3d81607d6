import { Fieldset, NumberInput, SimpleGrid, Stack, TagsInput, TextInput } from '@mantine/core';
import { DurationInput } from '../../parts/duration-input.tsx';
import { errorOf } from '../../parts/field-errors.tsx';
import type { Channel } from './channels.ts';
import { useChannelTexts } from './texts.ts';

type Saved = Pick<Channel, 'documentationLink' | 'filters' | 'deduplication' | 'maxAgeSeconds' | 'bodyRetentionDays'>;

/** As it is typed. */
export type ChannelValues = Omit<Saved, 'deduplication'> & {
  /** Its window is null while that field is empty, on the way to another number. */
  deduplication: { fields: string[]; withinSeconds: number | null } | null;
};

/** Whether it can be saved. */
export const isComplete = (values: ChannelValues): values is Saved => values.deduplication?.withinSeconds !== null;

export const valuesOf = (channel: Channel): ChannelValues => ({
  documentationLink: channel.documentationLink,
  filters: channel.filters,
  deduplication: channel.deduplication,
  maxAgeSeconds: channel.maxAgeSeconds,
  bodyRetentionDays: channel.bodyRetentionDays,
});

export const noValues: ChannelValues = {
  documentationLink: '',
  filters: [],
  deduplication: null,
  maxAgeSeconds: null,
  bodyRetentionDays: null,
};

const week = 604_800;
const ownFields = ['hoofdObject', 'resource', 'resourceUrl', 'actie'];

interface Props {
  values: ChannelValues;
  onChange: (changes: Partial<ChannelValues>) => void;
  /** Of the last attempt to save. */
  error: unknown;
  isReadOnly: boolean;
  isNew?: boolean;
}

/** The fields of a channel that can be changed. */
export function ChannelFields({ values, onChange, error, isReadOnly, isNew = false }: Props) {
  const t = useChannelTexts();
  const { documentationLink, filters, deduplication, maxAgeSeconds, bodyRetentionDays } = values;
  const setFields = (fields: string[]) =>
    onChange({
      deduplication: fields.length === 0 ? null : { withinSeconds: week, ...deduplication, fields },
    });
  return (
    <Stack gap="md">
      <TextInput
        label={t('link')}
        description={t('linkHint')}
        type="url"
        value={documentationLink}
        onChange={(event) => onChange({ documentationLink: event.currentTarget.value })}
        error={errorOf(error, 'documentationLink')}
        readOnly={isReadOnly}
        autoComplete="off"
      />
      <TagsInput
        label={t('filters')}
        description={t('filtersHint')}
        placeholder={filters.length === 0 ? t('filtersPlaceholder') : ''}
        value={filters}
        onChange={(names) => onChange({ filters: names })}
        error={errorOf(error, 'filters')}
        readOnly={isReadOnly}
        acceptValueOnBlur
      />
      <Fieldset legend={t('duplicatesTitle')}>
        <Stack gap="sm">
          <TagsInput
            label={t('fields')}
            description={`${t('duplicatesHint')} ${t('fieldsHint')}`}
            data={[...ownFields, ...filters.map((name) => `kenmerken.${name}`)]}
            value={deduplication?.fields ?? []}
            onChange={setFields}
            error={errorOf(error, 'deduplication')}
            readOnly={isReadOnly}
            acceptValueOnBlur
          />
          {deduplication && (
            <DurationInput
              label={t('within')}
              description={t('withinHint')}
              value={deduplication.withinSeconds}
              onChange={(seconds) => onChange({ deduplication: { ...deduplication, withinSeconds: seconds } })}
              error={deduplication.withinSeconds === null ? t('withinNeeded') : undefined}
              disabled={isReadOnly}
            />
          )}
        </Stack>
      </Fieldset>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <DurationInput
          label={t('maxAge')}
          description={t('maxAgeHint')}
          placeholder={t('forEver')}
          value={maxAgeSeconds}
          onChange={(seconds) => onChange({ maxAgeSeconds: seconds })}
          error={errorOf(error, 'maxAgeSeconds')}
          disabled={isReadOnly}
        />
        <NumberInput
          label={t('bodies')}
          description={t(isNew ? 'bodiesHintNew' : 'bodiesHint')}
          placeholder={t('general')}
          value={bodyRetentionDays ?? ''}
          onChange={(days) => onChange({ bodyRetentionDays: days === '' ? null : Number(days) })}
          error={errorOf(error, 'bodyRetentionDays')}
          min={1}
          max={3650}
          // A lone sign is no number, and without a number the days are those of the settings.
          allowNegative={false}
          allowDecimal={false}
          hideControls
          readOnly={isReadOnly}
        />
      </SimpleGrid>
    </Stack>
  );
}
