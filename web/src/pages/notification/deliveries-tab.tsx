import { ActionIcon, Button, Group, Text } from '@mantine/core';
import { TbChevronDown, TbChevronRight } from 'react-icons/tb';
import { useState } from 'react';
import { BusyButton } from '../../parts/busy-button.tsx';
import { CallError } from '../../parts/call-error.tsx';
import { AnchorLink } from '../../parts/links.tsx';
import { answerOf, api } from '../../api/client.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { DeliveryStateBadge, isEnded } from '../../parts/delivery-state.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { ExactTime } from '../../parts/relative-time.tsx';
import { told } from '../../parts/told.ts';
import { allOf, useUrlState } from '../../parts/url-state.ts';
import { SubscriptionState } from '../../selection/dry-run-result.tsx';
import { getsDeliveries } from '../../selection/selection.ts';
import { useMay } from '../../shell/session.tsx';
import { AllDeliveries } from './all-deliveries.tsx';
import { DeliveryDetail } from './delivery-detail.tsx';
import { useNotificationTexts, type NotificationText } from './notification-texts.ts';
import classes from './notification.module.css';
import { ReplayDialog } from './replay-dialog.tsx';
import { useRefresh, type ShownDelivery } from './whole-notification.ts';

interface Props {
  id: string;
  deliveries: readonly ShownDelivery[];
  onMore: (() => void) | undefined;
  isLoading: boolean;
}

/** Every subscription that gets it as a row; those that are open are in the address. */
export function DeliveriesTab({ id, deliveries, onMore, isLoading }: Props) {
  const t = useNotificationTexts();
  const [state, set] = useUrlState();
  const chosen = allOf(state['delivery']);
  const isOnly = deliveries.length === 1 && !onMore;
  // It needs no click.
  const open = chosen.length === 0 && isOnly ? [deliveries[0]!.subscriptionId] : chosen;
  const toggle = (subscriptionId: string) =>
    set({
      delivery: open.includes(subscriptionId)
        ? [...open.filter((each) => each !== subscriptionId), ...(isOnly ? ['none'] : [])]
        : [...open.filter((each) => each !== 'none'), subscriptionId],
    });
  if (deliveries.length === 0)
    return (
      <EmptyState
        title={t('nobody')}
        action={
          <Button variant="default" onClick={() => set({ tab: 'explain' }, true)}>
            {t('askWhy')}
          </Button>
        }
      >
        {t('nobodyDetail')}
      </EmptyState>
    );
  return (
    <>
      <AllDeliveries id={id} deliveries={deliveries} isPart={onMore !== undefined} />
      <ul className={classes.plain} aria-label={t('deliveries')}>
        {deliveries.map((delivery) => (
          <DeliveryRow
            key={delivery.subscriptionId}
            id={id}
            delivery={delivery}
            isOpen={open.includes(delivery.subscriptionId)}
            onToggle={() => toggle(delivery.subscriptionId)}
          />
        ))}
      </ul>
      {onMore && (
        <BusyButton variant="default" onClick={onMore} isBusy={isLoading}>
          {t('more')}
        </BusyButton>
      )}
    </>
  );
}

interface RowProps {
  id: string;
  delivery: ShownDelivery;
  isOpen: boolean;
  onToggle: () => void;
}

function DeliveryRow({ id, delivery, isOpen, onToggle }: RowProps) {
  const t = useNotificationTexts();
  const { subscriptionId, callbackUrl, owner, subscription, state } = delivery;
  const name = callbackUrl ?? t('deleted');
  const detail = `attempts-${subscriptionId}`;
  return (
    <li className={classes.delivery}>
      <div className={classes.summary}>
        <ActionIcon
          variant="subtle"
          color="gray"
          size={24}
          aria-label={`${t('details')}: ${name}`}
          aria-expanded={isOpen}
          aria-controls={isOpen ? detail : undefined}
          onClick={onToggle}
        >
          {isOpen ? <TbChevronDown size={16} aria-hidden /> : <TbChevronRight size={16} aria-hidden />}
        </ActionIcon>
        <div>
          <DeliveryStateBadge state={state} />
        </div>
        <div className={classes.who}>
          <AnchorLink size="sm" to="/subscriptions/$id" params={{ id: subscriptionId }}>
            <bdi>{name}</bdi>
          </AnchorLink>{' '}
          {callbackUrl !== null && <SubscriptionState state={subscription} />}
          <Text size="xs" c="dimmed" component="div">
            {owner !== null && <bdi>{owner} · </bdi>}
            <WhatNow delivery={delivery} t={t} />
          </Text>
        </div>
        <Actions id={id} delivery={delivery} name={name} />
      </div>
      {isOpen && (
        <div className={classes.detail} id={detail}>
          <DeliveryDetail notificationId={id} shown={delivery} />
        </div>
      )}
    </li>
  );
}

function WhatNow({ delivery, t }: { delivery: ShownDelivery; t: NotificationText }) {
  const { attemptCount, lastStatus, lastError, heldFor, nextAttemptAt, endedAt, state } = delivery;
  const answer =
    lastStatus === null
      ? lastError
      : lastError && lastError !== `HTTP ${lastStatus}`
        ? lastError
        : `HTTP ${lastStatus}`;
  const [beforeNext, afterNext] = t('nextTry', { when: '\u0000' }).split('\u0000');
  const [beforeEnd, afterEnd] = t('ended', { when: '\u0000' }).split('\u0000');
  return (
    <>
      {attemptCount === 0 ? t('noAttempts') : t('attempts', { count: attemptCount })}
      {attemptCount > 0 && <bdi> · {answer === null ? t('noAnswer') : <CallError error={answer} />}</bdi>}
      {heldFor !== null && <> · {t('heldFor', { why: t(heldFor) })}</>}
      {state === 'waiting' && nextAttemptAt !== null && (
        <>
          {' · '}
          {beforeNext}
          <ExactTime at={nextAttemptAt} />
          {afterNext}
        </>
      )}
      {endedAt !== null && isEnded(state) && (
        <>
          {' · '}
          {beforeEnd}
          <ExactTime at={endedAt} />
          {afterEnd}
        </>
      )}
    </>
  );
}

/** Actions on one delivery, in its row. */
function Actions({ id, delivery, name }: { id: string; delivery: ShownDelivery; name: string }) {
  const t = useNotificationTexts();
  const may = useMay('operator');
  const refresh = useRefresh(id);
  const [asks, setAsks] = useState<'cancel' | 'again' | 'replay'>();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const { subscriptionId, subscription, state, heldFor } = delivery;
  const path = { notificationId: id, subscriptionId };
  const retry = async () => {
    await answerOf(api.POST('/admin/v1/deliveries/{notificationId}/{subscriptionId}/retry', { params: { path } }));
    told(t(!isEnded(state) ? 'retried' : subscription === 'paused' ? 'sentAgainLater' : 'sentAgain'));
    await refresh();
  };
  const cancel = async () => {
    await answerOf(api.POST('/admin/v1/deliveries/{notificationId}/{subscriptionId}/cancel', { params: { path } }));
    told(t('cancelled'));
    await refresh();
  };
  const retryAtOnce = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await retry();
    } catch (failure) {
      setError(failure);
      await refresh();
    } finally {
      setBusy(false);
    }
  };
  if (!may) return null;
  const isSendable = getsDeliveries(subscription);
  // Otherwise it would only be held again.
  const mayGoNow = isSendable && subscription !== 'paused' && heldFor !== 'order';
  const canRetry = mayGoNow && (state === 'waiting' || state === 'held');
  const canSendAgain = isSendable && isEnded(state);
  return (
    <div className={classes.actions}>
      <Group gap="xs" wrap="nowrap">
        {canRetry && (
          <BusyButton size="xs" variant="default" isBusy={isBusy} onClick={() => void retryAtOnce()}>
            {t('tryNow')}
          </BusyButton>
        )}
        {canSendAgain && (
          <BusyButton
            size="xs"
            variant="default"
            isBusy={isBusy}
            onClick={() => {
              if (state === 'delivered') setAsks('replay');
              else if (state === 'unknown') setAsks('again');
              else void retryAtOnce();
            }}
          >
            {t('sendAgain')}
          </BusyButton>
        )}
        {!isEnded(state) && (
          <Button size="xs" variant="subtle" color="red" onClick={() => setAsks('cancel')}>
            {t('cancel')}
          </Button>
        )}
      </Group>
      {error !== undefined && <ProblemAlert error={error} />}
      <Confirm
        opened={asks === 'cancel'}
        onClose={() => setAsks(undefined)}
        title={t('cancelTitle')}
        action={t('cancelAction')}
        onConfirm={cancel}
      >
        {t('cancelDetail', { url: name })}
      </Confirm>
      <Confirm
        opened={asks === 'again'}
        onClose={() => setAsks(undefined)}
        title={t('againTitle')}
        action={t('sendAgain')}
        isDangerous={false}
        onConfirm={retry}
      >
        {t('againUnknown', { url: name })}
      </Confirm>
      {asks === 'replay' && (
        <ReplayDialog
          id={id}
          subscriptionId={subscriptionId}
          name={name}
          isDelivered
          onClose={() => setAsks(undefined)}
        />
      )}
    </div>
  );
}
