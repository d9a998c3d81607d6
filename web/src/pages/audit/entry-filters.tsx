import { Autocomplete, Button, SimpleGrid, TextInput } from '@mantine/core';
import { FoldedFilters } from '../../parts/folded-filters.tsx';
import { momentOf } from '../../parts/moment.ts';
import { TimeField } from '../../parts/time-field.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { useTypedText } from '../../parts/use-typed-text.ts';
import { useWrongTimes } from '../../parts/use-wrong-times.ts';
import { knownActions, type EntryFilter } from './entries.ts';
import { useAuditTexts } from './texts.ts';

export function useEntryFilter(): EntryFilter {
  const [state] = useUrlState();
  const text = (name: string) => oneOf(state[name]) || undefined;
  const time = (name: string) => {
    const given = text(name);
    // A text that is no moment is refused by the API, and not left out.
    return given === undefined ? undefined : (momentOf(given) ?? given);
  };
  return {
    client: text('client'),
    action: text('action'),
    subject: text('subject'),
    from: time('from'),
    to: time('to'),
  };
}

/** The filters are in the address. */
export function EntryFilters() {
  const t = useAuditTexts();
  const [state, set] = useUrlState();
  const filter = useEntryFilter();
  const times = useWrongTimes();
  const chosen = ['client', 'action', 'subject', 'from', 'to'].filter((name) => state[name] !== undefined).length;
  return (
    <FoldedFilters chosen={chosen}>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3, lg: 5 }} spacing="sm" verticalSpacing="xs" mb="sm">
        <Settled name="client" label={t('who')} hint={t('clientHint')} />
        <Settled name="action" label={t('action')} hint={t('actionHint')} data={knownActions} />
        <Settled name="subject" label={t('subject')} hint={t('subjectHint')} />
        {(['from', 'to'] as const).map((name) => (
          <TimeField
            key={`${name} ${times.generation}`}
            label={t(name)}
            value={filter[name]}
            onChange={(at) => set({ [name]: at })}
            onWrong={times.note(name)}
            step={1}
          />
        ))}
        {(chosen > 0 || times.isWrong) && (
          <Button
            variant="default"
            style={{ alignSelf: 'end' }}
            onClick={() => {
              times.empty();
              set({ client: undefined, action: undefined, subject: undefined, from: undefined, to: undefined });
            }}
          >
            {t('clear')}
          </Button>
        )}
      </SimpleGrid>
    </FoldedFilters>
  );
}

/** A filter that is typed. */
function Settled({ name, label, hint, data }: { name: string; label: string; hint: string; data?: string[] }) {
  const [typed, type] = useTypedText(name);
  const props = { label, placeholder: hint, value: typed };
  return data ? (
    <Autocomplete {...props} data={data} onChange={type} />
  ) : (
    <TextInput {...props} onChange={(event) => type(event.currentTarget.value)} autoComplete="off" />
  );
}
