import { Text, Timeline } from '@mantine/core';
import { languageOf } from '../../parts/call-error.tsx';
import { AnchorLink } from '../../parts/links.tsx';
import { useFormat } from '../../i18n/format.ts';
import { defineTexts } from '../../i18n/i18n.ts';
import { ExactTime } from '../../parts/relative-time.tsx';
import { useNotificationTexts } from './notification-texts.ts';
import type { ShownDelivery, StoryEvent } from './whole-notification.ts';

const useEventTexts = defineTexts(
  'story',
  {
    accepted: 'Accepted',
    scheduled: 'To be sent later',
    matched_one: 'Matched to {{count}} subscription',
    matched_other: 'Matched to {{count}} subscriptions',
    unmatched: 'Matched nobody',
    queued: 'Handed to the queue',
    held: 'Held',
    released: 'Released',
    sent: 'Attempt {{attempt}} sent',
    answered: 'Attempt {{attempt}} answered with HTTP {{status}}',
    unanswered: 'Attempt {{attempt}} got no answer',
    waiting: 'Waits for its next attempt',
    retried: 'Sent again by hand',
    'subscription-paused': 'Its subscription was paused',
    'subscription-resumed': 'Its subscription was resumed',
    'subscription-disabled': 'Its subscription was disabled',
    'subscription-enabled': 'Its subscription was enabled',
    'subscription-deleted': 'Its subscription was deleted',
    'endpoint-opened': 'Its endpoint was parked',
    'endpoint-reset': 'Its endpoint was reset',
    delivered: 'Delivered',
    failed: 'Failed: a dead letter',
    expired: 'Expired: a dead letter',
    cancelled: 'Cancelled',
    unknown: 'Ended as unknown: a dead letter',
  },
  {
    accepted: 'Aangenomen',
    scheduled: 'Wordt later verstuurd',
    matched_one: 'Bestemd voor {{count}} abonnement',
    matched_other: 'Bestemd voor {{count}} abonnementen',
    unmatched: 'Voor niemand bestemd',
    queued: 'In de wachtrij gezet',
    held: 'Vastgehouden',
    released: 'Vrijgegeven',
    sent: 'Poging {{attempt}} verstuurd',
    answered: 'Poging {{attempt}} beantwoord met HTTP {{status}}',
    unanswered: 'Poging {{attempt}} kreeg geen antwoord',
    waiting: 'Wacht op de volgende poging',
    retried: 'Met de hand opnieuw verstuurd',
    'subscription-paused': 'Het abonnement werd gepauzeerd',
    'subscription-resumed': 'Het abonnement werd hervat',
    'subscription-disabled': 'Het abonnement werd uitgeschakeld',
    'subscription-enabled': 'Het abonnement werd ingeschakeld',
    'subscription-deleted': 'Het abonnement werd verwijderd',
    'endpoint-opened': 'De ontvanger werd geparkeerd',
    'endpoint-reset': 'De ontvanger werd weer toegelaten',
    delivered: 'Afgeleverd',
    failed: 'Mislukt: onbestelbaar',
    expired: 'Verlopen: onbestelbaar',
    cancelled: 'Geannuleerd',
    unknown: 'Geëindigd als onbekend: onbestelbaar',
  },
);

const bad = ['failed', 'expired', 'unknown', 'unanswered', 'unmatched', 'subscription-disabled', 'endpoint-opened'];

interface Props {
  story: readonly StoryEvent[];
  deliveries: readonly ShownDelivery[];
  /** There are more deliveries than are shown. */
  isPart: boolean;
}

/** The events of a notification in order, as far as the ledger knows. */
export function StoryTab({ story, deliveries, isPart }: Props) {
  const t = useNotificationTexts();
  const eventText = useEventTexts();
  const format = useFormat();
  const names = new Map(deliveries.map(({ subscriptionId, callbackUrl }) => [subscriptionId, callbackUrl]));
  const isSeveral = deliveries.length > 1 || isPart;
  const colorOf = ({ event, status }: StoryEvent) =>
    event === 'delivered' || (event === 'answered' && status !== null && status < 300)
      ? 'green'
      : bad.includes(event) || event === 'answered'
        ? 'red'
        : 'gray';
  return (
    <>
      {isPart && (
        <Text size="sm" c="dimmed" mb="sm">
          {t('storyPart')}
        </Text>
      )}
      <Timeline bulletSize={14} lineWidth={2} active={story.length}>
        {story.map((each, index) => {
          const { at, event, subscriptionId, attempt, status, reason, by, until, count } = each;
          return (
            <Timeline.Item
              key={index}
              color={colorOf(each)}
              title={
                <Text size="sm" fw={500}>
                  {eventText(event === 'matched' ? 'matched' : event, { attempt, status, count: count ?? 0 })}
                </Text>
              }
            >
              <Text size="xs" c="dimmed" component="div" className="anywhere">
                {at === null ? t('unknownWhen') : <ExactTime at={at} />}
                {by !== null && <bdi> · {t('by', { who: by })}</bdi>}
                {until !== null && ` · ${t('until', { when: format.time(until) })}`}
                {isSeveral && subscriptionId !== null && (
                  <>
                    {' · '}
                    <AnchorLink inherit to="/subscriptions/$id" params={{ id: subscriptionId }}>
                      <bdi>{names.get(subscriptionId) ?? t('deleted')}</bdi>
                    </AnchorLink>
                  </>
                )}
              </Text>
              {reason !== null && reason !== `HTTP ${status}` && (
                <Text size="sm" className="anywhere">
                  <bdi lang={languageOf(reason)}>{reason}</bdi>
                </Text>
              )}
            </Timeline.Item>
          );
        })}
      </Timeline>
    </>
  );
}
