import { Button, Checkbox, Group, Paper, Text } from '@mantine/core';
import { TbChevronDown, TbChevronRight } from 'react-icons/tb';
import { useFormat } from '../../i18n/format.ts';
import { CallError } from '../../parts/call-error.tsx';
import { DeliveryStateBadge } from '../../parts/delivery-state.tsx';
import { useErrorClassTexts } from '../../parts/error-class.ts';
import { RelativeTime } from '../../parts/relative-time.tsx';
import { SubscriptionState } from '../../selection/dry-run-result.tsx';
import type { Act } from '../../selection/act-dialog.tsx';
import { getsDeliveries, idOfGroup, selectionOf, type Criteria } from '../../selection/selection.ts';
import { SubscriptionName } from '../../selection/subscription-name.tsx';
import { useMay } from '../../shell/session.tsx';
import type { Choice } from './choice.ts';
import classes from './dead-letters.module.css';
import { LettersOfGroup } from './letters-of-group.tsx';
import { keyOfGroup, type Receiver } from './receivers.ts';
import { useDeadLettersTexts } from './texts.ts';
import type { DeadLetterGroup } from './use-dead-letters.ts';

interface Props {
  receiver: Receiver;
  criteria: Criteria;
  choice: Choice;
  isOpen: (group: DeadLetterGroup) => boolean;
  onToggle: (group: DeadLetterGroup) => void;
  onAct: (act: Act) => void;
}

/** The dead letters of one subscription, by what they died of. */
export function ReceiverSection({ receiver, criteria, choice, isOpen, onToggle, onAct }: Props) {
  const t = useDeadLettersTexts();
  const { groups, callbackUrl, owner, subscriptionId, subscription } = receiver;
  const chosen = groups.filter((group) => choice.hasGroup(group)).length;
  const name = callbackUrl?.replace(/^https?:\/\//, '') ?? subscriptionId;
  return (
    <Paper withBorder component="section" aria-label={name} className={classes.section}>
      <Group gap="sm" wrap="nowrap" align="flex-start" px="sm" py="xs" className={classes.head}>
        <Checkbox
          mt={2}
          aria-label={t('selectReceiver', { receiver: name })}
          checked={chosen === groups.length}
          indeterminate={chosen > 0 && chosen < groups.length}
          disabled={choice.isFull && chosen === 0}
          onChange={(event) => choice.setGroups(groups.map(keyOfGroup), event.currentTarget.checked && !choice.isFull)}
        />
        <div style={{ flex: 1, minWidth: 0 }}>
          <Group gap="xs">
            <SubscriptionName id={subscriptionId} callbackUrl={callbackUrl} />
            <SubscriptionState state={subscription} />
            {owner !== null && (
              <Text size="sm" c="dimmed">
                {t('ownerOf', { owner })}
              </Text>
            )}
          </Group>
          {subscription === 'deleted' && (
            <Text size="xs" c="dimmed">
              {t('noSubscription')}
            </Text>
          )}
        </div>
        <Count value={receiver.count} isAtLeast={receiver.isAtLeast} />
      </Group>
      {groups.map((group) => (
        <GroupRow
          key={idOfGroup(group)}
          group={group}
          receiver={name}
          criteria={criteria}
          choice={choice}
          isOpen={isOpen(group)}
          onToggle={() => onToggle(group)}
          onAct={onAct}
        />
      ))}
    </Paper>
  );
}

interface RowProps extends Pick<Props, 'criteria' | 'choice' | 'onAct'> {
  group: DeadLetterGroup;
  receiver: string;
  isOpen: boolean;
  onToggle: () => void;
}

function GroupRow({ group, receiver, criteria, choice, isOpen, onToggle, onAct }: RowProps) {
  const t = useDeadLettersTexts();
  const errorName = useErrorClassTexts();
  const may = useMay('operator');
  const error = errorName(group.errorClass);
  const key = keyOfGroup(group);
  // The other filters of the list narrow the selection too: somebody who looks at one channel means that one.
  const { channels, acceptedFrom, acceptedTo, replay } = criteria;
  const selection = selectionOf({ channels, acceptedFrom, acceptedTo, replay }, { groups: [key] });
  const { lastError, lastStatus } = group.newest;
  const Chevron = isOpen ? TbChevronDown : TbChevronRight;
  return (
    <div className={classes.group} role="group" aria-label={error}>
      <div className={classes.row}>
        <Checkbox
          size="sm"
          aria-label={t('selectGroup', { error, receiver })}
          checked={choice.hasGroup(group)}
          disabled={choice.isFull && !choice.hasGroup(group)}
          onChange={(event) => choice.setGroups([key], event.currentTarget.checked)}
        />
        <div className={classes.what}>
          <Group gap="xs">
            <Text size="sm" fw={500}>
              {error}
            </Text>
            {group.state !== 'failed' && <DeliveryStateBadge state={group.state} />}
          </Group>
          {lastError !== null || lastStatus !== null ? (
            <Text size="xs" c="dimmed" lineClamp={2} className="anywhere" title={lastError ?? undefined}>
              {lastError === null ? `HTTP ${lastStatus}` : <CallError error={lastError} />}
            </Text>
          ) : null}
        </div>
        <Text size="xs" c="dimmed" className={classes.times} component="div">
          <div>
            {t('oldest')}: <RelativeTime at={group.oldestAcceptedAt} />
          </div>
          <div>
            {t('last')}: <RelativeTime at={group.lastEndedAt} />
          </div>
        </Text>
        <Count value={group.count} isAtLeast={group.isAtLeast} />
        <div className={classes.buttons}>
          <Button
            size="compact-sm"
            variant="subtle"
            className={classes.toggle}
            leftSection={<Chevron size={14} aria-hidden />}
            aria-expanded={isOpen}
            aria-label={t('showGroup', { error, receiver })}
            onClick={onToggle}
          >
            {isOpen ? t('hide') : t('show')}
          </Button>
          <Button
            size="compact-sm"
            variant="light"
            disabled={!may || !getsDeliveries(group.subscription)}
            onClick={() => onAct({ kind: 'replay', selection })}
          >
            {t('sendAgain')}
          </Button>
          <Button
            size="compact-sm"
            variant="default"
            disabled={!may}
            onClick={() => onAct({ kind: 'close', selection })}
          >
            {t('close')}
          </Button>
        </div>
      </div>
      {isOpen && (
        <div className={classes.letters}>
          <LettersOfGroup
            group={key}
            label={`${receiver}: ${error}`}
            subscription={group.subscription}
            criteria={criteria}
            choice={choice}
          />
        </div>
      )}
    </div>
  );
}

function Count({ value, isAtLeast }: { value: number; isAtLeast: boolean }) {
  const t = useDeadLettersTexts();
  const format = useFormat();
  const shown = format.number(value);
  return (
    <Text size="sm" fw={600} className={classes.count}>
      {isAtLeast ? t('atLeast', { shown }) : shown}
    </Text>
  );
}
