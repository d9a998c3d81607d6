import { Alert } from '@mantine/core';
import { TbPlugConnectedX } from 'react-icons/tb';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { isPassing } from '../api/problem.ts';
import { useFormat } from '../i18n/format.ts';
import { useShellTexts } from './texts.ts';

/** Says that Heraut does not answer, and since when what is shown is old; gone as soon as anything is answered. */
export function ConnectionNotice() {
  const t = useShellTexts();
  const format = useFormat();
  const client = useQueryClient();
  const [since, setSince] = useState<number>();
  useEffect(
    () =>
      client.getQueryCache().subscribe(({ type, query }) => {
        if (type !== 'updated') return;
        if (query.state.fetchFailureCount > 0 && isPassing(query.state.fetchFailureReason))
          setSince((known) => known ?? Date.now());
        else if (
          query.state.status === 'success' &&
          query.state.fetchFailureCount === 0 &&
          query.state.fetchStatus === 'idle'
        )
          setSince(undefined);
      }),
    [client],
  );
  return (
    <div role="status">
      {since !== undefined && (
        <Alert color="orange" variant="light" icon={<TbPlugConnectedX aria-hidden />} mb="md" p="xs">
          {t('unreachable', { since: format.clock(since) })}
        </Alert>
      )}
    </div>
  );
}
