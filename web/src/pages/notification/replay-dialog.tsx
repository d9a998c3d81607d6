import { Alert, Group, Skeleton, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { BusyButton } from '../../parts/busy-button.tsx';
import { AnchorLink } from '../../parts/links.tsx';
import { answerOf, api } from '../../api/client.ts';
import { useFocusWhereItWas } from '../../parts/focus-return.ts';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { useOnce } from '../../parts/use-once.ts';
import { nameOfState, useWorkTexts } from '../../selection/work.tsx';
import { useNotificationTexts } from './notification-texts.ts';
import { useRefresh } from './whole-notification.ts';

interface Props {
  id: string;
  subscriptionId: string;
  name: string;
  /**
   * There is a delivery, and it arrived: it is sent a second time. Otherwise there is none, and its filters have to fit
   * now.
   */
  isDelivered?: boolean;
  onClose: () => void;
}

/** Sends this notification to one subscription by a replay: first what it would do, then how far it is. */
export function ReplayDialog({ id, subscriptionId, name, isDelivered = false, onClose }: Props) {
  const t = useNotificationTexts();
  const work = useWorkTexts();
  useFocusWhereItWas();
  const refresh = useRefresh(id);
  const [note, setNote] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [replayId, setReplayId] = useState<string>();
  const once = useOnce();
  const meant = isDelivered
    ? {
        selection: { notification: id, subscriptions: [subscriptionId], states: ['delivered' as const] },
        onlyMissed: false,
      }
    : { selection: { notification: id, everythingFor: subscriptionId }, onlyMissed: true };
  const dryRun = useQuery({
    queryKey: ['notification', id, 'dry-run', subscriptionId, isDelivered],
    queryFn: () => answerOf(api.POST('/admin/v1/replays/dry-run', { body: { kind: 'replay', ...meant } })),
    staleTime: 0,
  });
  const replay = useQuery({
    queryKey: ['sent-by-replay', replayId],
    queryFn: ({ signal }) =>
      answerOf(api.GET('/admin/v1/replays/{id}', { params: { path: { id: replayId! } }, signal })),
    enabled: replayId !== undefined,
    refetchInterval: ({ state }) => (state.data?.endedAt ? false : 700),
  });
  const isOver = Boolean(replay.data?.endedAt);
  const done = replay.data?.done ?? 0;
  // As soon as it is sent, and not only when the replay has ended: the dialog may be closed in between.
  useEffect(() => {
    if (isOver || done > 0) void refresh();
  }, [isOver, done]);

  const send = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const body = { ...meant, ratePerSecond: 100, ...(note.trim() !== '' && { note: note.trim() }) };
      const created = await once(body, (sent, header) =>
        answerOf(api.POST('/admin/v1/replays', { params: { header }, body: sent })),
      );
      setReplayId(created.id);
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <FormDialog
      opened
      onClose={onClose}
      title={isDelivered ? t('againTitle') : t('replayTitle')}
      centered
      isBusy={isBusy}
      onSubmit={() => void send()}
    >
      {dryRun.isLoading && <Skeleton height={40} />}
      {dryRun.error && <ProblemAlert error={dryRun.error} onRetry={() => void dryRun.refetch()} />}
      {dryRun.data?.count === 0 && replayId === undefined && (
        <Alert color="orange" variant="light">
          {t('replayNone')}
        </Alert>
      )}
      {dryRun.data && dryRun.data.count > 0 && (
        <Text size="sm" className="anywhere">
          {t(isDelivered ? 'againDelivered' : 'replayDetail', { url: name })}
        </Text>
      )}
      {replayId === undefined && (
        <TextInput
          label={t('note')}
          value={note}
          maxLength={1000}
          onChange={(event) => setNote(event.currentTarget.value)}
        />
      )}
      {error !== undefined && <ProblemAlert error={error} isOnce />}
      <div role="status">
        {replayId !== undefined && (
          <Text size="sm">
            {replay.data
              ? t('progress', {
                  state: work(nameOfState(replay.data.state)),
                  done: replay.data.done,
                  count: replay.data.count,
                })
              : t('replayed')}{' '}
            <AnchorLink inherit to="/replays/$id" params={{ id: replayId }}>
              {t('toReplay')}
            </AnchorLink>
          </Text>
        )}
      </div>
      {replayId === undefined && (
        <Group justify="flex-end">
          <BusyButton type="submit" isBusy={isBusy} disabled={!dryRun.data || dryRun.data.count === 0}>
            {t('replayAction')}
          </BusyButton>
        </Group>
      )}
    </FormDialog>
  );
}
