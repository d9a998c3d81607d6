import { Button } from '@mantine/core';
import { TbFilter } from 'react-icons/tb';
import { useEffect, useId, useRef, useState, type ReactNode } from 'react';
import { defineTexts } from '../i18n/i18n.ts';
import classes from './folded-filters.module.css';

const useTexts = defineTexts(
  'folded-filters',
  { show: 'Filters', showChosen: 'Filters: {{count}} chosen' },
  { show: 'Filters', showChosen: 'Filters: {{count}} gekozen' },
);

interface Props {
  /** So many of them narrow the list. */
  chosen: number;
  children: ReactNode;
}

/** Filters behind a button where the page is as narrow as a phone, and simply there where it is wider. */
export function FoldedFilters({ chosen, children }: Props) {
  const t = useTexts();
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const fields = useRef<HTMLDivElement>(null);
  const before = useRef(chosen);
  useEffect(() => {
    // The button that took a filter away goes with the last one: who had the focus there goes on from the fields.
    if (chosen < before.current && document.activeElement === document.body) fields.current?.focus();
    before.current = chosen;
  }, [chosen]);
  return (
    <>
      <Button
        className={classes.open}
        variant="default"
        size="sm"
        leftSection={<TbFilter size={16} aria-hidden />}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        {chosen === 0 ? t('show') : t('showChosen', { count: chosen })}
      </Button>
      <div
        ref={fields}
        id={id}
        role="group"
        aria-label={t('show')}
        tabIndex={-1}
        className={classes.fields}
        data-folded={!isOpen || undefined}
      >
        {children}
      </div>
    </>
  );
}
