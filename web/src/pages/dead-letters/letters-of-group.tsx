import { Button, Checkbox, Text, Tooltip } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useMutationState, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { BusyButton } from '../../parts/busy-button.tsx';
import { CallError } from '../../parts/call-error.tsx';
import { AnchorLink } from '../../parts/links.tsx';
import { answerOf, api } from '../../api/client.ts';
import { isProblem } from '../../api/problem.ts';
import { useFormat } from '../../i18n/format.ts';
import { AsOf } from '../../parts/as-of.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { DeliveryStateBadge } from '../../parts/delivery-state.tsx';
import { readListsAnew } from '../../parts/found-lists.ts';
import { ListTable, type Column } from '../../parts/list-table.tsx';
import { readOn, tryAgain } from '../../parts/next-page.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { RelativeTime } from '../../parts/relative-time.tsx';
import { told, toldFailure } from '../../parts/told.ts';
import { deadStates, getsDeliveries, type Criteria, type Group } from '../../selection/selection.ts';
import { useMay } from '../../shell/session.tsx';
import type { Choice } from './choice.ts';
import { useDeadLettersTexts } from './texts.ts';
import { groupsKey, isSame, putIntoRow, useLetters, type DeadLetterGroup, type Delivery } from './use-dead-letters.ts';

const sendAgainKey = ['dead-letters', 'send-again'] as const;
const noticeOf = ({ notificationId, subscriptionId }: Delivery) => `not-sent ${notificationId} ${subscriptionId}`;
const isDead = ({ state }: Delivery): boolean => deadStates.some((each) => each === state);

interface Props {
  group: Group;
  label: string;
  /** The state of the receiver's subscription now. */
  subscription: DeadLetterGroup['subscription'];
  criteria: Criteria;
  choice: Choice;
}

/** The single dead letters of a group. */
export function LettersOfGroup({ group, label, subscription, criteria, choice }: Props) {
  const t = useDeadLettersTexts();
  const format = useFormat();
  const may = useMay('operator');
  const client = useQueryClient();
  const letters = useLetters(group, criteria);
  const retry = useMutation({
    mutationKey: sendAgainKey,
    mutationFn: ({ notificationId, subscriptionId }: Delivery) =>
      answerOf(
        api.POST('/admin/v1/deliveries/{notificationId}/{subscriptionId}/retry', {
          params: { path: { notificationId, subscriptionId } },
        }),
      ),
    onMutate: (row) => void notifications.hide(noticeOf(row)),
    onSuccess: (answered) => {
      putIntoRow(client, answered);
      told(`${t('sentAgain')}. ${t(subscription === 'paused' ? 'sentAgainLater' : 'sentAgainText')}`);
    },
    onError: (error, row) => {
      if (isProblem(error, 'delivery-delivered')) putIntoRow(client, { ...row, state: 'delivered' });
    },
    // Also where it was refused: it may have arrived by now.
    onSettled: () => {
      readListsAnew(client);
      return client.invalidateQueries({ queryKey: groupsKey });
    },
  });
  // Of each row: others can be sent meanwhile, and this list be closed and opened again.
  const underWay = useMutationState({
    filters: { mutationKey: sendAgainKey, status: 'pending' },
    select: ({ state }) => state.variables as Delivery,
  });
  /** Its error moves no row, and is there until it is closed or the same one is sent again. */
  const send = (row: Delivery) =>
    void retry.mutateAsync(row).catch((error: unknown) =>
      toldFailure(
        <>
          <Text size="sm" fw={700} mb="xs" className="anywhere">
            {t('notSentAgain', { id: row.notificationId })}
          </Text>
          <ProblemAlert error={error} />
        </>,
        { id: noticeOf(row) },
      ),
    );
  /** One of which it is not known whether it arrived. It stays while its dialog fades. */
  const [asked, setAsked] = useState<Delivery>();
  const [isAsking, ask] = useState(false);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = letters;
  const pages = letters.data?.pages ?? [];
  const rows = pages.flatMap(({ deliveries }) => deliveries);
  const searchedTo = pages.at(-1)?.searchedTo ?? null;
  const isInChosenGroup = choice.hasGroup(group);
  const goOn = () => {
    if (searchedTo === null) readOn(letters)();
  };

  const columns: Column<Delivery>[] = [
    {
      key: 'choice',
      header: '',
      width: '28px',
      render: (row) => (
        <Tooltip label={t('full')} multiline w={320} disabled={!choice.isFull || choice.hasDelivery(row)}>
          <Checkbox
            size="xs"
            aria-label={t('selectLetter', { id: row.notificationId })}
            checked={isInChosenGroup || choice.hasDelivery(row)}
            disabled={isInChosenGroup || ((choice.isFull || !isDead(row)) && !choice.hasDelivery(row))}
            onChange={(event) => choice.setDelivery(keyOf(row), event.currentTarget.checked)}
          />
        </Tooltip>
      ),
    },
    {
      key: 'notification',
      header: t('notification'),
      width: 'minmax(110px, 1fr)',
      render: (row) => (
        <AnchorLink
          size="sm"
          ff="monospace"
          title={row.notificationId}
          to="/notifications/$id"
          params={{ id: row.notificationId }}
        >
          …{row.notificationId.slice(-12)}
        </AnchorLink>
      ),
    },
    { key: 'channel', header: t('channel'), width: 'minmax(80px, 140px)', isWide: true, render: (row) => row.channel },
    {
      key: 'accepted',
      header: t('accepted'),
      width: '156px',
      isWide: true,
      render: (row) => <RelativeTime at={row.acceptedAt} />,
    },
    { key: 'ended', header: t('ended'), width: '156px', render: (row) => <RelativeTime at={row.endedAt} /> },
    {
      key: 'attempts',
      header: t('attempts'),
      width: '70px',
      align: 'right',
      isWide: true,
      render: (row) => format.number(row.attemptCount),
    },
    {
      key: 'answer',
      header: t('answer'),
      width: 'minmax(120px, 1.2fr)',
      isWide: true,
      render: (row) => (
        <Text span size="sm" title={row.lastError ?? undefined}>
          {row.lastError === null ? (row.lastStatus ?? '–') : <CallError error={row.lastError} />}
        </Text>
      ),
    },
    {
      key: 'retry',
      header: '',
      width: '150px',
      align: 'right',
      render: (row) =>
        isDead(row) ? (
          <BusyButton
            size="compact-xs"
            variant="default"
            disabled={!may || !getsDeliveries(subscription)}
            isBusy={underWay.some((each) => isSame(each, row))}
            aria-label={t('sendOneAgain', { id: row.notificationId })}
            onClick={() => {
              if (row.state !== 'unknown') return send(row);
              setAsked(row);
              ask(true);
            }}
          >
            {t('sendAgain')}
          </BusyButton>
        ) : row.state === 'delivered' ? (
          <DeliveryStateBadge state="delivered" />
        ) : (
          <Text span size="sm" c="dimmed">
            {t('wasSentAgain')}
          </Text>
        ),
    },
  ];

  const problem = letters.isError && <ProblemAlert error={letters.error} onRetry={tryAgain(letters)} />;
  if (problem && rows.length === 0) return problem;
  return (
    <>
      <AsOf at={pages[0]?.readAt} onAgain={() => void letters.refetch()} />
      {problem}
      <Confirm
        opened={isAsking}
        onClose={() => ask(false)}
        title={t('unknownTitle')}
        action={t('sendAgain')}
        isDangerous={false}
        onConfirm={() => (asked ? retry.mutateAsync(asked) : Promise.resolve())}
      >
        <Text size="sm" ff="monospace" className="anywhere">
          {asked?.notificationId}
        </Text>
        {t('unknownText')}
      </Confirm>
      {!letters.isPending && rows.length === 0 && !hasNextPage ? (
        <Text size="sm" c="dimmed">
          {t('goneGroup')}
        </Text>
      ) : (
        <ListTable
          label={label}
          columns={columns}
          rows={rows}
          keyOf={(row) => row.notificationId}
          onEnd={goOn}
          isLoading={letters.isPending || isFetchingNextPage}
          rowHeight={36}
          height="324px"
        />
      )}
      {searchedTo !== null && hasNextPage && !isFetchingNextPage && (
        <Button size="compact-sm" variant="subtle" onClick={() => void fetchNextPage()}>
          {t('searchFurther', { to: format.time(searchedTo) })}
        </Button>
      )}
    </>
  );
}

const keyOf = ({ notificationId, subscriptionId }: Delivery) => ({ notificationId, subscriptionId });
