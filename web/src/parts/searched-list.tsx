import { Button, TextInput } from '@mantine/core';
import { TbSearch } from 'react-icons/tb';
import type { UseQueryResult } from '@tanstack/react-query';
import { EmptyState } from './empty-state.tsx';
import { FoundStatus } from './found-status.tsx';
import { ListTable, type Column } from './list-table.tsx';
import { ProblemAlert } from './problem-alert.tsx';
import { useTypedText } from './use-typed-text.ts';

interface Props<Row> {
  query: UseQueryResult<readonly Row[]>;
  /** Some of them in a row have what is sought. */
  textsOf: (row: Row) => readonly string[];
  columns: readonly Column<Row>[];
  keyOf: (row: Row) => string;
  onOpen: (row: Row) => void;
  isMarked?: (row: Row) => boolean;
  /** Those of the page. */
  t: (key: 'title' | 'search' | 'none' | 'noneDetail' | 'notFound' | 'clear') => string;
}

/** A list that came whole, with a field that finds in it; what is sought is in the address. */
export function SearchedList<Row>({ query, textsOf, columns, keyOf, onOpen, isMarked, t }: Props<Row>) {
  const [sought, seek] = useTypedText('q');
  const wanted = sought.trim().toLowerCase();
  const rows = (query.data ?? []).filter((row) => textsOf(row).some((text) => text.toLowerCase().includes(wanted)));
  const problem = query.error && <ProblemAlert error={query.error} onRetry={() => void query.refetch()} />;
  // First in both, so that it stays the same one.
  const status = <FoundStatus count={query.data && rows.length} none={t(query.data?.length ? 'notFound' : 'none')} />;
  if (query.data?.length === 0)
    return (
      <>
        {status}
        {problem}
        <EmptyState title={t('none')}>{t('noneDetail')}</EmptyState>
      </>
    );
  return (
    <>
      {status}
      {problem}
      <TextInput
        mb="sm"
        aria-label={t('search')}
        placeholder={t('search')}
        leftSection={<TbSearch size={16} aria-hidden />}
        value={sought}
        onChange={(event) => seek(event.currentTarget.value)}
        w={{ base: '100%', xs: 280 }}
      />
      {query.data && rows.length === 0 ? (
        <EmptyState
          title={t('notFound')}
          action={
            <Button variant="default" onClick={() => seek('')}>
              {t('clear')}
            </Button>
          }
        />
      ) : (
        <ListTable
          label={t('title')}
          columns={columns}
          rows={rows}
          keyOf={keyOf}
          onOpen={onOpen}
          isLoading={query.isPending}
          {...(isMarked && { isMarked })}
        />
      )}
    </>
  );
}
