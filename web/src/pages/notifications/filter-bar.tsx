import { Button, CloseButton, Combobox, Group, Text, TextInput, UnstyledButton, useCombobox } from '@mantine/core';
import { TbFilter } from 'react-icons/tb';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { foundListsKey } from '../../parts/found-lists.ts';
import { allOf, useUrlState, type UrlState } from '../../parts/url-state.ts';
import {
  adding,
  criteria,
  filtersOf,
  guessesFor,
  readTyped,
  readValue,
  removing,
  type Criterion,
  type Filter,
  type Wrong,
} from './criteria.ts';
import classes from './filter-bar.module.css';
import { useSearchTexts } from './search-texts.ts';
import { timeAgo, useFilterText, useSuggestions } from './suggestions.ts';

const isTime = (criterion: Criterion | undefined) => criterion === 'acceptedFrom' || criterion === 'acceptedTo';

/** Every criterion of the API as a chip: chosen by name, or guessed from what is typed or pasted. */
export function FilterBar() {
  const t = useSearchTexts();
  const [state, setState] = useUrlState();
  const textOf = useFilterText(allOf(state['subscription']));
  const client = useQueryClient();
  const set: typeof setState = (changes, isStep) => {
    // Another search is asked anew; what was found before would be of then.
    client.removeQueries({ queryKey: foundListsKey, type: 'inactive' });
    setState(changes, isStep);
  };
  const filters = filtersOf(state);
  const [criterion, setCriterion] = useState<Criterion>();
  const [replaced, setReplaced] = useState<Filter>();
  const [typed, setTyped] = useState('');
  const [wrong, setWrong] = useState<Wrong>();
  const input = useRef<HTMLInputElement>(null);
  const store = useCombobox({ onDropdownClose: () => store.resetSelectedOption() });
  const suggestions = useSuggestions(criterion, isTime(criterion) ? '' : typed);

  const begin = (next: Criterion | undefined, value = '') => {
    setCriterion(next);
    setTyped(value);
    setWrong(undefined);
  };
  const add = (filter: Filter) => {
    const without: UrlState = replaced ? removing(state, replaced) : {};
    set({ ...without, ...adding({ ...state, ...without }, filter) }, true);
    setReplaced(undefined);
    begin(undefined);
    store.closeDropdown();
  };
  const addTyped = (to: Criterion, value: string) => {
    if (value.trim() === '') return;
    const read = readValue(to, value);
    if ('value' in read) return add({ criterion: to, value: read.value });
    begin(to, value);
    setWrong(read.wrong);
  };
  const choose = (option: string) => {
    const [kind, ...rest] = option.split(' ');
    const value = rest.join(' ');
    if (kind === 'by') {
      const next = value as Criterion;
      if (next === 'unmatched') return add({ criterion: next, value: 'true' });
      begin(next);
      // An input of another type comes in its place.
      setTimeout(() => input.current?.focus());
    } else if (kind === 'guess') addTyped(value as Criterion, typed);
    else if (value.endsWith(':') && criterion === 'characteristic') setTyped(value);
    else if (criterion) add({ criterion, value: value.startsWith('ago:') ? timeAgo(value) : value });
  };
  const edit = (filter: Filter) => {
    if (filter.criterion === 'unmatched') return;
    setReplaced(filter);
    begin(filter.criterion, isTime(filter.criterion) ? '' : filter.value);
    setTimeout(() => input.current?.focus());
  };
  const stop = () => {
    setReplaced(undefined);
    begin(undefined);
  };

  const sought = typed.trim().toLowerCase();
  const names = criteria.filter((each) => `${each} ${t(each)}`.toLowerCase().includes(sought));
  const options = criterion
    ? suggestions.map(({ value, label, detail }) => ({ key: `value ${value}`, label, detail }))
    : [
        ...guessesFor(typed).map((each) => ({
          key: `guess ${each}`,
          label: `${t(each)}: ${typed.trim()}`,
          detail: '',
        })),
        ...names.map((each) => ({ key: `by ${each}`, label: t(each), detail: '' })),
      ];
  useEffect(() => store.updateSelectedOptionIndex(), [options.length]);

  return (
    <div className={classes.bar}>
      <Combobox store={store} onOptionSubmit={choose} position="bottom-start" middlewares={{ flip: false }}>
        <Combobox.Target>
          <TextInput
            key={isTime(criterion) ? 'time' : 'text'}
            ref={input}
            type={isTime(criterion) ? 'datetime-local' : 'text'}
            step={isTime(criterion) ? 1 : undefined}
            aria-label={criterion ? t('valueOf', { name: t(criterion) }) : t('filter')}
            placeholder={criterion ? t('valueOf', { name: t(criterion) }) : t('placeholder')}
            value={typed}
            error={wrong && t(wrong)}
            leftSection={<TbFilter size={16} aria-hidden />}
            rightSection={
              criterion ? (
                <CloseButton size="sm" onClick={stop} aria-label={t('remove', { filter: t(criterion) })} />
              ) : null
            }
            onChange={(event) => {
              setTyped(event.currentTarget.value);
              setWrong(undefined);
              store.openDropdown();
            }}
            onClick={() => store.openDropdown()}
            onFocus={() => store.openDropdown()}
            onBlur={() => store.closeDropdown()}
            onKeyDown={(event) => {
              if (event.key === 'Escape' && criterion && !store.dropdownOpened) stop();
              if (event.key === 'Backspace' && typed === '') {
                if (criterion) stop();
                else if (filters.length > 0) set(removing(state, filters.at(-1)!), true);
              }
              if (event.key !== 'Enter' || (store.dropdownOpened && store.getSelectedOptionIndex() >= 0)) return;
              event.preventDefault();
              const named = criterion ? undefined : readTyped(typed);
              const guess = criterion ?? guessesFor(typed)[0];
              if (named) add(named);
              else if (guess) addTyped(guess, typed);
            }}
            autoComplete="off"
            spellCheck={false}
          />
        </Combobox.Target>
        <Combobox.Dropdown hidden={options.length === 0}>
          <Combobox.Options mah={320} style={{ overflowY: 'auto' }}>
            {options.map(({ key, label, detail }) => (
              <Combobox.Option value={key} key={key}>
                <Text size="sm" truncate>
                  <bdi>{label}</bdi>
                </Text>
                {detail && detail !== label && (
                  <Text size="xs" c="dimmed" truncate>
                    {detail}
                  </Text>
                )}
              </Combobox.Option>
            ))}
          </Combobox.Options>
        </Combobox.Dropdown>
      </Combobox>
      {filters.length > 0 && (
        <Group gap={6} mt={8} component="ul" className={classes.chips} aria-label={t('filters')}>
          {filters.map((filter) => {
            const { name, value } = textOf(filter);
            const text = value === '' ? name : `${name}: ${value}`;
            return (
              <li key={`${filter.criterion} ${filter.value}`} className={classes.chip}>
                <UnstyledButton
                  className={classes.text}
                  onClick={() => edit(filter)}
                  disabled={filter.criterion === 'unmatched'}
                  aria-label={filter.criterion === 'unmatched' ? undefined : t('change', { filter: text })}
                >
                  <span className={classes.name}>{value === '' ? '' : `${name}: `}</span>
                  <bdi>{value === '' ? name : value}</bdi>
                </UnstyledButton>
                <CloseButton
                  size={24}
                  iconSize={14}
                  aria-label={t('remove', { filter: text })}
                  onClick={() => set(removing(state, filter), true)}
                />
              </li>
            );
          })}
          {filters.length > 1 && (
            <li>
              <Button
                variant="subtle"
                size="compact-sm"
                onClick={() => set(Object.fromEntries(criteria.map((each) => [each, undefined])), true)}
              >
                {t('clear')}
              </Button>
            </li>
          )}
        </Group>
      )}
    </div>
  );
}
