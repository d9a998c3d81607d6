import { Button, CloseButton, Combobox, Group, Text, TextInput, UnstyledButton, useCombobox } from '@mantine/core';
import { TbFilter } from 'react-icons/tb';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useImperativeHandle, useRef, useState, type Ref } from 'react';
import { useFocusAfterRemoval } from '../../parts/focus-after-removal.ts';
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
import { agos, useFilterText, useSuggestions } from './suggestions.ts';

const isTime = (criterion: Criterion | undefined) => criterion === 'acceptedFrom' || criterion === 'acceptedTo';

export interface FilterBarHandle {
  /** On the field, without opening what can be chosen. */
  focus: () => void;
}

/** Every criterion of the API as a chip: chosen by name, or guessed from what is typed or pasted. */
export function FilterBar({ handle }: { handle: Ref<FilterBarHandle> }) {
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
  const suggestions = useSuggestions(criterion, typed);
  // In a field for a time arrows change a part of it: nothing is chosen beside it by the same keys.
  const isForTime = isTime(criterion);
  const isBack = useRef(false);
  const open = () => {
    if (!isForTime && !isBack.current) store.openDropdown();
  };

  const begin = (next: Criterion | undefined, value = '') => {
    setCriterion(next);
    setTyped(value);
    setWrong(undefined);
    if (isTime(next)) store.closeDropdown();
  };
  /** Without opening what can be chosen. An input of another type may come in the place of the one there is. */
  const backToField = () => {
    store.closeDropdown();
    setTimeout(() => {
      isBack.current = true;
      input.current?.focus();
      isBack.current = false;
    });
  };
  const { list: bar, removing: removingAt } = useFocusAfterRemoval<HTMLDivElement>(
    'filter',
    filters.length,
    backToField,
  );
  useImperativeHandle(handle, () => ({ focus: backToField }));
  const add = (filter: Filter) => {
    const without: UrlState = replaced ? removing(state, replaced) : {};
    set({ ...without, ...adding({ ...state, ...without }, filter) }, true);
    setReplaced(undefined);
    begin(undefined);
    backToField();
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
    else if (criterion) add({ criterion, value });
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
    backToField();
  };
  const remove = (filter: Filter, at: number) => {
    removingAt(at);
    set(removing(state, filter), true);
  };
  const clear = () => {
    removingAt(0);
    set(Object.fromEntries(criteria.map((each) => [each, undefined])), true);
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
    <div ref={bar} className={classes.bar}>
      <Combobox store={store} onOptionSubmit={choose} position="bottom-start" middlewares={{ flip: false }}>
        <Combobox.Target withKeyboardNavigation={!isForTime}>
          <TextInput
            key={isForTime ? 'time' : 'text'}
            ref={input}
            type={isForTime ? 'datetime-local' : 'text'}
            step={isForTime ? 1 : undefined}
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
              open();
            }}
            onClick={open}
            onFocus={open}
            onBlur={() => store.closeDropdown()}
            onKeyDown={(event) => {
              // Of a time that is typed in part the browser gives no text, and this instead.
              const isPart = event.currentTarget.validity.badInput;
              if (event.key === 'Escape' && criterion && !store.dropdownOpened) stop();
              if (event.key === 'Backspace' && typed === '' && !isPart) {
                if (criterion) stop();
                else if (filters.length > 0) set(removing(state, filters.at(-1)!), true);
              }
              if (event.key !== 'Enter' || (store.dropdownOpened && store.getSelectedOptionIndex() >= 0)) return;
              event.preventDefault();
              if (isPart) return setWrong('badTime');
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
      {isForTime && criterion && (
        <Group gap={6} mt={8}>
          {agos.map(([name, ms]) => (
            <Button
              key={name}
              size="compact-sm"
              variant="default"
              onClick={() => add({ criterion, value: new Date(Date.now() - ms).toISOString() })}
            >
              {t(name)}
            </Button>
          ))}
        </Group>
      )}
      {filters.length > 0 && (
        <Group gap={6} mt={8} component="ul" className={classes.chips} aria-label={t('filters')}>
          {filters.map((filter, at) => {
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
                  data-removes="filter"
                  onClick={() => remove(filter, at)}
                />
              </li>
            );
          })}
          {filters.length > 1 && (
            <li>
              <Button variant="subtle" size="compact-sm" onClick={clear}>
                {t('clear')}
              </Button>
            </li>
          )}
        </Group>
      )}
    </div>
  );
}
