import { Autocomplete, Button, SimpleGrid, TextInput } from '@mantine/core';
import { useEffect, useState } from 'react';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { knownActions, type EntryFilter } from './entries.ts';
import { useAuditTexts } from './texts.ts';

/** Typing pauses for so long before the list follows. */
const settledMs = 400;

export function useEntryFilter(): EntryFilter {
  const [state] = useUrlState();
  const text = (name: string) => oneOf(state[name]) || undefined;
  const time = (name: string) => {
    const at = Date.parse(text(name) ?? '');
    return Number.isNaN(at) ? undefined : new Date(at).toISOString();
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
  const isAny = ['client', 'action', 'subject', 'from', 'to'].some((name) => state[name] !== undefined);
  return (
    <SimpleGrid cols={{ base: 2, md: 3, lg: 5 }} spacing="sm" verticalSpacing="xs" mb="sm">
      <Settled name="client" label={t('who')} hint={t('clientHint')} />
      <Settled name="action" label={t('action')} hint={t('actionHint')} data={knownActions} />
      <Settled name="subject" label={t('subject')} hint={t('subjectHint')} />
      {(['from', 'to'] as const).map((name) => (
        <TextInput
          key={name}
          type="datetime-local"
          label={t(name)}
          value={localTime(oneOf(state[name]))}
          onChange={(event) => set({ [name]: isoOf(event.currentTarget.value) })}
          step={1}
        />
      ))}
      {isAny && (
        <Button
          variant="default"
          style={{ alignSelf: 'end' }}
          onClick={() =>
            set({ client: undefined, action: undefined, subject: undefined, from: undefined, to: undefined })
          }
        >
          {t('clear')}
        </Button>
      )}
    </SimpleGrid>
  );
}

/** A filter that is typed: the list follows when the typing pauses, and the field follows the address. */
function Settled({ name, label, hint, data }: { name: string; label: string; hint: string; data?: string[] }) {
  const [state, set] = useUrlState();
  const inAddress = oneOf(state[name]) ?? '';
  const [typed, setTyped] = useState(inAddress);
  useEffect(() => setTyped(inAddress), [inAddress]);
  useEffect(() => {
    if (typed === inAddress) return;
    const timer = setTimeout(() => set({ [name]: typed }), settledMs);
    return () => clearTimeout(timer);
  }, [typed, inAddress, name, set]);
  const props = { label, placeholder: hint, value: typed };
  return data ? (
    <Autocomplete {...props} data={data} onChange={setTyped} limit={40} />
  ) : (
    <TextInput {...props} onChange={(event) => setTyped(event.currentTarget.value)} autoComplete="off" />
  );
}

/** For an input, in the zone of the viewer. */
function localTime(iso: string | undefined): string {
  const at = new Date(iso ?? '');
  if (Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

const isoOf = (local: string): string | undefined => (local === '' ? undefined : new Date(local).toISOString());
