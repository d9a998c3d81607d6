import {
  Button,
  Checkbox,
  Group,
  Paper,
  SegmentedControl,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
  Title,
} from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { useState } from 'react';
import { TbCalculator } from 'react-icons/tb';
import { PageHeader } from '../../parts/page-header.tsx';
import { DeliveryStateBadge, type DeliveryState } from '../../parts/delivery-state.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { useGoOn } from '../../parts/use-go-on.ts';
import { ActOnSelection, nothingTyped } from '../../selection/act-on-selection.tsx';
import { ChannelsField, ErrorsField, SubscriptionField, SubscriptionsField } from '../../selection/fields.tsx';
import { criteriaOf, selectionOf, unfinishedStates, type Criteria, type Selection } from '../../selection/selection.ts';
import { useSelectionTexts } from '../../selection/texts.ts';
import { TimeField } from '../../parts/time-field.tsx';
import { useTypedText } from '../../parts/use-typed-text.ts';
import { useWrongTimes, type WrongTimes } from '../../parts/use-wrong-times.ts';
import { useNewReplayTexts } from './texts.ts';

/** After a change, what was counted is not what is meant any more. */
const noCount = { count: undefined };

const ways = ['missed', 'everything', 'unfinished'] as const;
type Way = (typeof ways)[number];

/**
 * That may be asked for. Where nothing is said, `failed` and `expired` are sent again, and all that is unfinished is
 * cancelled.
 */
const statesFor = {
  missed: ['failed', 'expired', 'unknown', 'cancelled', 'delivered'],
  unfinished: unfinishedStates,
} as const satisfies Partial<Record<Way, readonly DeliveryState[]>>;

/** Says which deliveries are meant, has them counted, and sends them again or cancels them. */
export function NewReplayPage() {
  const t = useNewReplayTexts();
  const goOn = useGoOn();
  const [state, setState] = useUrlState();
  const set: typeof setState = (changes) => setState({ ...changes, ...noCount });
  /** How it is sent stays when what is meant is changed, and counted again. */
  const kept = useState(nothingTyped);
  const isNarrow = useMediaQuery('(max-width: 36em)');
  const criteria = criteriaOf(state);
  const times = useWrongTimes();
  const way = ways.find((each) => each === oneOf(state['what'])) ?? 'missed';
  const problem = times.isWrong ? 'wrongTime' : problemOf(way, criteria);
  const selection = problem === undefined ? selectionFor(way, criteria) : undefined;
  const counted = state['count'] === undefined ? undefined : selection;
  const kind = way === 'unfinished' ? 'cancel' : 'replay';
  return (
    <>
      <PageHeader
        title={t(kind === 'cancel' ? 'titleCancel' : 'title')}
        description={t(kind === 'cancel' ? 'descriptionCancel' : 'description')}
      />
      <Stack gap="md" maw={860}>
        <Paper withBorder p="md">
          <form
            onSubmit={(event) => {
              event.preventDefault();
              if (!selection) return;
              // The address may not have yet what was typed last: without it, everything would be counted.
              const typed = new FormData(event.currentTarget).get('notification');
              setState({ notification: typeof typed === 'string' ? typed.trim() : undefined, count: 'yes' }, true);
            }}
          >
            <Stack gap="md">
              <SegmentedControl
                aria-label={t('what')}
                fullWidth
                orientation={isNarrow ? 'vertical' : 'horizontal'}
                data={ways.map((each) => ({ value: each, label: t(each) }))}
                value={way}
                // Unfinished deliveries are in other states than those that are sent again.
                onChange={(what) => set({ what, state: undefined })}
              />
              <Text size="sm" c="dimmed">
                {t(`${way}Hint`)}
              </Text>
              {way === 'everything' ? (
                <SimpleGrid cols={{ base: 1, sm: 2 }}>
                  <SubscriptionField
                    label={t('forWhom')}
                    value={criteria.subscriptions[0]}
                    onChange={(subscription) => set({ subscription })}
                  />
                  <NotificationField />
                </SimpleGrid>
              ) : (
                <DeliveryFields way={way} criteria={criteria} set={set} />
              )}
              <Window criteria={criteria} set={set} times={times} />
              <Group gap="sm">
                <Button
                  type="submit"
                  variant={counted ? 'default' : 'filled'}
                  disabled={!selection}
                  leftSection={<TbCalculator size={16} aria-hidden />}
                >
                  {t('count')}
                </Button>
                <Text size="sm" c="dimmed" aria-live="polite">
                  {t(problem ?? 'countHint')}
                </Text>
              </Group>
            </Stack>
          </form>
        </Paper>
        {counted && (
          <Paper withBorder p="md" component="section" aria-label={t('result')}>
            <Title order={2} mb="sm">
              {t('result')}
            </Title>
            <ActOnSelection
              key={`${kind} ${JSON.stringify(counted)}`}
              kind={kind}
              selection={counted}
              isWithDelivered={counted.states?.includes('delivered')}
              kept={kept}
              onDone={({ id }) => void goOn({ to: '/replays/$id', params: { id } })}
            />
          </Paper>
        )}
      </Stack>
    </>
  );
}

interface FieldsProps {
  criteria: Criteria;
  set: ReturnType<typeof useUrlState>[1];
}

const hints: Partial<Record<DeliveryState, 'unknownHint' | 'cancelledHint' | 'deliveredHint' | 'sendingHint'>> = {
  unknown: 'unknownHint',
  cancelled: 'cancelledHint',
  delivered: 'deliveredHint',
  sending: 'sendingHint',
};

function DeliveryFields({ way, criteria, set }: FieldsProps & { way: keyof typeof statesFor }) {
  const t = useNewReplayTexts();
  const states: readonly DeliveryState[] = statesFor[way];
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <SubscriptionsField value={criteria.subscriptions} onChange={(subscription) => set({ subscription })} />
        <ChannelsField value={criteria.channels} onChange={(channel) => set({ channel })} />
        <ErrorsField value={criteria.errorClasses} onChange={(errorClass) => set({ errorClass })} />
        <NotificationField />
      </SimpleGrid>
      <Checkbox.Group
        label={t(way === 'missed' ? 'states' : 'statesNow')}
        description={t(way === 'missed' ? 'statesHint' : 'statesNowHint')}
        value={criteria.states}
        // With the first that is chosen here, what an address had that cannot be chosen goes.
        onChange={(chosen) => set({ state: states.filter((each) => chosen.includes(each)) })}
      >
        <Stack gap="xs" mt="xs">
          {states.map((each) => (
            <Checkbox
              key={each}
              value={each}
              label={
                <Group gap="xs">
                  <DeliveryStateBadge state={each} />
                  {hints[each] && <Text size="sm">{t(hints[each])}</Text>}
                </Group>
              }
            />
          ))}
        </Stack>
      </Checkbox.Group>
    </>
  );
}

function NotificationField() {
  const t = useSelectionTexts();
  const [id, type] = useTypedText('notification', noCount);
  return (
    <TextInput
      name="notification"
      label={t('notification')}
      placeholder={t('anyNotification')}
      value={id}
      onChange={(event) => type(event.currentTarget.value)}
      autoComplete="off"
      spellCheck={false}
    />
  );
}

function Window({ criteria, set, times }: FieldsProps & { times: WrongTimes }) {
  const t = useSelectionTexts();
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      {(['acceptedFrom', 'acceptedTo'] as const).map((name) => (
        <TimeField
          key={name}
          label={t(name)}
          value={criteria[name]}
          onChange={(time) => set({ [name]: time })}
          onWrong={times.note(name)}
        />
      ))}
    </SimpleGrid>
  );
}

function problemOf(way: Way, { subscriptions, acceptedFrom, acceptedTo }: Criteria) {
  if (way === 'everything' && subscriptions.length === 0) return 'needsSubscription';
  if (acceptedFrom !== undefined && acceptedTo !== undefined && acceptedFrom >= acceptedTo) return 'windowOrder';
  return undefined;
}

function selectionFor(way: Way, criteria: Criteria): Selection {
  if (way !== 'everything') return selectionOf(criteria);
  const { subscriptions, notification, acceptedFrom, acceptedTo } = criteria;
  return selectionOf({ notification, acceptedFrom, acceptedTo }, { everythingFor: subscriptions[0] });
}
