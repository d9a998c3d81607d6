import { Modal, Text, TextInput, VisuallyHidden } from '@mantine/core';
import { TbSearch } from 'react-icons/tb';
import { useCallback, useEffect, useId, useRef, useState, type KeyboardEvent } from 'react';
import { defineTexts } from '../i18n/i18n.ts';
import { ProblemAlert } from '../parts/problem-alert.tsx';
import { useFocusWhereItWas } from '../parts/focus-return.ts';
import { findItems, idIn, itemGroups, type Item } from './find-items.ts';
import classes from './palette.module.css';
import { useFound, useItems } from './use-items.ts';

const useTexts = defineTexts(
  'palette',
  {
    title: 'Go to',
    placeholder: 'A page, a channel, a subscription, or an id',
    found: 'With this id',
    pages: 'Pages',
    actions: 'Actions',
    channels: 'Channels',
    subscriptions: 'Subscriptions',
    count_one: 'One result',
    count_other: '{{count}} results',
    nothing: 'Nothing has these words in its name.',
    looking: 'Looking …',
    absent:
      'No notification, replay, subscription or channel has this id: it is mistyped, older than the retention, or of something else.',
  },
  {
    title: 'Ga naar',
    placeholder: 'Een pagina, een kanaal, een abonnement of een id',
    found: 'Met dit id',
    pages: "Pagina's",
    actions: 'Acties',
    channels: 'Kanalen',
    subscriptions: 'Abonnementen',
    count_one: 'Eén resultaat',
    count_other: '{{count}} resultaten',
    nothing: 'Niets heeft deze woorden in zijn naam.',
    looking: 'Bezig met zoeken …',
    absent:
      'Geen notificatie, herverzending, abonnement of kanaal heeft dit id: het is verkeerd getypt, ouder dan de bewaartermijn, of van iets anders.',
  },
);

interface Props {
  /** The keys that were typed before the palette was there. */
  early: () => string;
  onClose: () => void;
  onHelp: () => void;
}

/** Leads to everything that has a name or an id, by the keyboard alone. */
export default function Palette({ early, onClose, onHelp }: Props) {
  useFocusWhereItWas();
  const t = useTexts();
  const listId = useId();
  const list = useRef<HTMLUListElement>(null);
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  /** Enter was pressed before it was known what has the id. */
  const [isWanted, setWanted] = useState(false);
  const id = idIn(typed);
  // The rest of an address, or of a line of the log, is in no name.
  const sought = id ?? typed;
  const { items, isLoading, error } = useItems(sought, onHelp);
  const found = useFound(id);
  const shown = findItems([...items, ...(found.data ?? [])], sought);
  const chosen = shown[Math.min(at, shown.length - 1)];

  const run = (item: Item) => {
    onClose();
    item.run();
  };

  useEffect(() => {
    if (isWanted && chosen) run(chosen);
    // Once, when the answer is there.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [isWanted, chosen]);

  // As soon as it is in the document: what is typed until then is in `early`, and what is typed from then on comes to
  // it.
  const attach = useCallback(
    (input: HTMLInputElement | null) => {
      if (!input) return;
      input.focus();
      setTyped(early());
    },
    [early],
  );

  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [at, typed]);

  const onKeyDown = (event: KeyboardEvent) => {
    const last = shown.length - 1;
    const to = { ArrowDown: at >= last ? 0 : at + 1, ArrowUp: at <= 0 ? last : at - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      setAt(Math.max(to, 0));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      if (chosen) run(chosen);
      else setWanted(isLoading || found.isFetching);
    }
  };

  const optionId = (item: Item) => `${listId}-${item.id.replaceAll(' ', '-')}`;
  const status =
    shown.length > 0
      ? t('count', { count: shown.length })
      : isLoading || found.isFetching
        ? t('looking')
        : id === undefined
          ? t('nothing')
          : t('absent');
  const problem = found.error ?? error;
  return (
    <Modal.Root opened onClose={onClose} size="lg" yOffset="12dvh" transitionProps={{ duration: 0 }}>
      <Modal.Overlay />
      <Modal.Content aria-label={t('title')} className={classes.content}>
        <TextInput
          ref={attach}
          data-autofocus
          size="md"
          variant="unstyled"
          px="md"
          py={4}
          leftSection={<TbSearch size={18} aria-hidden />}
          placeholder={t('placeholder')}
          aria-label={t('title')}
          role="combobox"
          aria-expanded
          aria-autocomplete="list"
          aria-controls={listId}
          aria-activedescendant={chosen && optionId(chosen)}
          autoComplete="off"
          spellCheck={false}
          value={typed}
          onChange={(event) => {
            setTyped(event.currentTarget.value);
            setAt(0);
            setWanted(false);
          }}
          onKeyDown={onKeyDown}
        />
        {problem !== null && problem !== undefined && <ProblemAlert error={problem} />}
        <ul ref={list} id={listId} role="listbox" aria-label={t('title')} className={classes.list}>
          {itemGroups.map((group) => {
            const members = shown.filter((item) => item.group === group);
            if (members.length === 0) return null;
            return (
              <li key={group} role="presentation">
                <Text size="xs" c="dimmed" id={`${listId}-${group}`} className={classes.heading}>
                  {t(group)}
                </Text>
                <ul role="group" aria-labelledby={`${listId}-${group}`} className={classes.group}>
                  {members.map((item) => (
                    <li
                      key={item.id}
                      id={optionId(item)}
                      role="option"
                      aria-selected={item === chosen}
                      className={classes.option}
                      onMouseMove={() => setAt(shown.indexOf(item))}
                      onClick={() => run(item)}
                    >
                      <span className={classes.label}>{item.label}</span>
                      {item.hint && (
                        <Text span size="xs" c="dimmed" className={classes.hint}>
                          {item.hint}
                        </Text>
                      )}
                    </li>
                  ))}
                </ul>
              </li>
            );
          })}
          {shown.length === 0 && (
            <li role="presentation">
              <Text size="sm" c="dimmed" p="sm">
                {status}
              </Text>
            </li>
          )}
        </ul>
        <VisuallyHidden role="status">{status}</VisuallyHidden>
      </Modal.Content>
    </Modal.Root>
  );
}
