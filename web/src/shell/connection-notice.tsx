import { Alert } from '@mantine/core';
import { TbPlugConnectedX } from 'react-icons/tb';
import { notifyManager, useQueryClient, type QueryClient } from '@tanstack/react-query';
import { useCallback, useSyncExternalStore } from 'react';
import { isUnanswered } from '../api/problem.ts';
import { useFormat } from '../i18n/format.ts';
import { useShellTexts } from './texts.ts';

/** Nothing of what is asked for was read yet. */
const neverRead = 0;

/**
 * When the oldest of what is shown was read, of that which nothing answers for; undefined: there is an answer for
 * everything.
 */
function unansweredSince(client: QueryClient): number | undefined {
  const unanswered = client
    .getQueryCache()
    .findAll({ type: 'active' })
    .map(({ state }) => state)
    .filter(
      ({ fetchStatus, fetchFailureCount, fetchFailureReason }) =>
        fetchStatus !== 'idle' && fetchFailureCount > 0 && isUnanswered(fetchFailureReason),
    );
  if (unanswered.length === 0) return undefined;
  const readAt = unanswered.map(({ dataUpdatedAt }) => dataUpdatedAt).filter((at) => at !== neverRead);
  return readAt.length === 0 ? neverRead : Math.min(...readAt);
}

/**
 * Says that Heraut does not answer, and how old what is shown may be; gone as soon as everything that is asked for was
 * answered.
 */
export function ConnectionNotice() {
  const t = useShellTexts();
  const format = useFormat();
  const client = useQueryClient();
  const since = useSyncExternalStore(
    useCallback((onChange) => client.getQueryCache().subscribe(notifyManager.batchCalls(onChange)), [client]),
    () => unansweredSince(client),
  );
  return (
    <div role="status">
      {since !== undefined && (
        <Alert color="orange" variant="light" icon={<TbPlugConnectedX aria-hidden />} mb="md" p="xs">
          {since === neverRead ? t('unreachable') : t('unreachableSince', { since: format.asOf(since) })}
        </Alert>
      )}
    </div>
  );
}
