import type { components } from '../../generated/admin-api.d.ts';
import { currentLanguage, defineTexts } from '../i18n/i18n.ts';
import { useFormat } from '../i18n/format.ts';
import { errorPart } from './call-error.tsx';

type Explanation = components['schemas']['Explanation'];
type Forecast = components['schemas']['Forecast'];
type Judgement = Pick<Explanation, 'verdict' | 'entries' | 'entryCount'>;
type Entry = Explanation['entries'][number];
type Delivery = NonNullable<Explanation['delivery']>;

/** More of them would make no clearer text. */
const mostNamed = 3;
const mostShown = 80;
/** As the ledger writes it (src/ledger/end-fetched.ts). */
const fetchedBySubscriber = 'fetched by its subscriber';

const useTexts = defineTexts(
  'explanation',
  {
    metByAll: 'Entry {{number}} fits: it has no filters.',
    metBy: 'Entry {{number}} fits: {{filters}}.',
    'filters-not-met': 'No entry about this channel fits: {{entries}}.',
    'not-subscribed': 'The subscription has no entry about this channel.',
    disabled: 'The subscription was disabled: its receiver had answered 410.',
    'created-later': 'The subscription was made after the notification was accepted.',
    'deleted-before': 'The subscription was deleted before the notification was accepted.',
    unknown: 'The body of the notification was erased, so its characteristics cannot be compared.',
    equal: '{{name}} is “{{value}}”',
    any: '{{name}} may have any value',
    absent: 'the notification does not have {{name}}',
    keptAwayBy: 'entry {{number}} asks for {{filters}}',
    different: '{{name}} “{{wanted}}”, and it is “{{actual}}”',
    more: '{{count}} more',
    yetDelivery:
      'Yet there is a delivery: a replay made it, or the subscription was another one when the notification was matched.',
    yetNone: 'Yet there is no delivery: the subscription was another one when the notification was matched.',
    because: ' ({{reason}})',
    queued: 'It is in the queue, or a worker has it in hand.',
    sending: 'Its one call is being made.',
    scheduled: 'It waits to be sent, due {{at}}.',
    waiting: 'It waits for attempt {{number}}, due {{at}}{{because}}.',
    held: 'It is held: {{why}}.',
    heldSince: 'It is held since {{at}}: {{why}}.',
    delivered_one: 'It was delivered {{at}}, at the first attempt.',
    delivered_other: 'It was delivered {{at}}, after {{count}} attempts.',
    fetched: 'It was fetched by its subscriber {{at}}.',
    failed_one: 'It failed {{at}}, after one attempt{{because}}. It is kept as a dead letter.',
    failed_other: 'It failed {{at}}, after {{count}} attempts{{because}}. It is kept as a dead letter.',
    expired: 'It expired {{at}}{{because}}. It is kept as a dead letter.',
    notKnown: 'It is not known whether it arrived{{because}}. It is not sent again by itself.',
    cancelled: 'It was cancelled {{at}}{{because}}.',
    'endpoint-parked': 'its endpoint is parked',
    parkedBy: '{{address}} is parked since {{since}}{{because}}; the next probe is due {{next}}',
    'endpoint-busy': 'more came than its endpoint takes, and what is held goes first',
    paused: 'its subscription is paused',
    rate: 'its subscription has a rate, and gets it as soon as that allows',
    order: 'an earlier notification about the same object is not delivered yet',
    behind: 'it is behind {{id}}, which is about the same object',
    wouldBeSent: 'It would be sent at once.',
    wouldBeHeld: 'It would be held: {{why}}.',
    wouldExpire: 'It would not be sent: it is older than its channel allows.',
    wouldBeDuplicate: 'It would not be sent: by the rule of its channel it is a duplicate.',
  },
  {
    metByAll: 'Regel {{number}} past: die heeft geen filters.',
    metBy: 'Regel {{number}} past: {{filters}}.',
    'filters-not-met': 'Geen regel over dit kanaal past: {{entries}}.',
    'not-subscribed': 'Het abonnement heeft geen regel over dit kanaal.',
    disabled: 'Het abonnement was uitgeschakeld: de ontvanger had 410 geantwoord.',
    'created-later': 'Het abonnement is gemaakt nadat de notificatie was aangenomen.',
    'deleted-before': 'Het abonnement was al verwijderd toen de notificatie werd aangenomen.',
    unknown: 'De inhoud van de notificatie is gewist, zodat de kenmerken niet vergeleken kunnen worden.',
    equal: '{{name}} is “{{value}}”',
    any: '{{name}} mag elke waarde hebben',
    absent: 'de notificatie heeft geen {{name}}',
    keptAwayBy: 'regel {{number}} vraagt {{filters}}',
    different: '{{name}} “{{wanted}}”, en het is “{{actual}}”',
    more: 'nog {{count}}',
    yetDelivery:
      'Toch is er een aflevering: die is gemaakt door opnieuw te versturen, of het abonnement was anders toen de notificatie werd vergeleken.',
    yetNone: 'Toch is er geen aflevering: het abonnement was anders toen de notificatie werd vergeleken.',
    because: ' ({{reason}})',
    queued: 'Ze staat in de wachtrij, of een worker is ermee bezig.',
    sending: 'De enige aanroep wordt nu gedaan.',
    scheduled: 'Ze wacht op haar tijd: {{at}}.',
    waiting: 'Ze wacht op poging {{number}}: {{at}}{{because}}.',
    held: 'Ze wordt vastgehouden: {{why}}.',
    heldSince: 'Ze wordt vastgehouden sinds {{at}}: {{why}}.',
    delivered_one: 'Ze is afgeleverd op {{at}}, bij de eerste poging.',
    delivered_other: 'Ze is afgeleverd op {{at}}, na {{count}} pogingen.',
    fetched: 'De abonnee heeft haar opgehaald op {{at}}.',
    failed_one: 'Ze is mislukt op {{at}}, na één poging{{because}}. Ze wordt bewaard als onbestelbaar.',
    failed_other: 'Ze is mislukt op {{at}}, na {{count}} pogingen{{because}}. Ze wordt bewaard als onbestelbaar.',
    expired: 'Ze is verlopen op {{at}}{{because}}. Ze wordt bewaard als onbestelbaar.',
    notKnown: 'Het is niet bekend of ze is aangekomen{{because}}. Ze wordt niet vanzelf opnieuw verstuurd.',
    cancelled: 'Ze is geannuleerd op {{at}}{{because}}.',
    'endpoint-parked': 'de ontvanger is geparkeerd',
    parkedBy: '{{address}} is geparkeerd sinds {{since}}{{because}}; de volgende proefaanroep is {{next}}',
    'endpoint-busy': 'er komt meer dan de ontvanger aankan, en wat wordt vastgehouden gaat voor',
    paused: 'het abonnement is gepauzeerd',
    rate: 'het abonnement heeft een maximaal tempo, en krijgt haar zodra dat het toelaat',
    order: 'een eerdere notificatie over hetzelfde object is nog niet afgeleverd',
    behind: 'ze komt na {{id}}, die over hetzelfde object gaat',
    wouldBeSent: 'Ze zou meteen worden verstuurd.',
    wouldBeHeld: 'Ze zou worden vastgehouden: {{why}}.',
    wouldExpire: 'Ze zou niet worden verstuurd: ze is ouder dan het kanaal toestaat.',
    wouldBeDuplicate: 'Ze zou niet worden verstuurd: volgens de regel van het kanaal is ze een dubbele.',
  },
);

/**
 * An explanation of the API in the language of the viewer: made of its fields, for its own sentences are English.
 * `PartlyEnglish` shows it.
 */
export function useExplanationText() {
  const t = useTexts();
  const format = useFormat();
  const listed = (texts: string[], left = 0) => {
    const named = texts.slice(0, mostNamed);
    const more = left + texts.length - named.length;
    return new Intl.ListFormat(currentLanguage(), { type: 'conjunction' }).format(
      more > 0 ? [...named, t('more', { count: more })] : named,
    );
  };
  const cut = (value: string) => (value.length > mostShown ? `${value.slice(0, mostShown)}…` : value);
  const because = (reason: string | null) => (reason === null ? '' : t('because', { reason: errorPart(reason) }));
  const at = (time: string | null) => (time === null ? '–' : format.time(time));

  const whyMet = ({ number, filters }: Entry) =>
    filters.length === 0
      ? t('metByAll', { number })
      : t('metBy', {
          number,
          filters: listed(
            filters.map(({ name, wanted, result }) =>
              result === 'any' || result === 'absent' ? t(result, { name }) : t('equal', { name, value: cut(wanted) }),
            ),
          ),
        });
  const whyNot = ({ number, filters }: Entry) =>
    t('keptAwayBy', {
      number,
      filters: listed(
        filters
          .filter(({ result }) => result === 'different')
          .map(({ name, wanted, actual }) => t('different', { name, wanted: cut(wanted), actual: cut(actual ?? '') })),
      ),
    });
  const judgement = ({ verdict, entries, entryCount }: Judgement): string => {
    switch (verdict) {
      case 'matched':
        return whyMet(entries[0]!);
      case 'filters-not-met':
        return t(verdict, { entries: listed(entries.map(whyNot), entryCount - entries.length) });
      case 'disabled':
        return `${whyMet(entries[0]!)} ${t(verdict)}`;
      default:
        return t(verdict);
    }
  };

  const whyHeld = ({ heldFor, behind, endpoint }: Delivery) => {
    if (heldFor === null) return '';
    if (heldFor === 'order' && behind !== null) return t('behind', { id: behind });
    if (heldFor === 'endpoint-parked' && endpoint)
      return t('parkedBy', {
        address: endpoint.address,
        since: format.time(endpoint.openedAt),
        because: because(endpoint.reason),
        next: format.time(endpoint.nextProbeAt),
      });
    return t(heldFor);
  };
  const situation = (delivery: Delivery): string => {
    const { state, attemptCount, heldSince, nextAttemptAt, endedAt, lastError } = delivery;
    const ended = { count: attemptCount, at: at(endedAt), because: because(lastError) };
    switch (state) {
      case 'queued':
      case 'sending':
        return t(state);
      case 'waiting':
        return attemptCount === 0
          ? t('scheduled', { at: at(nextAttemptAt) })
          : t('waiting', { number: attemptCount + 1, at: at(nextAttemptAt), because: because(lastError) });
      case 'held':
        return heldSince === null
          ? t('held', { why: whyHeld(delivery) })
          : t('heldSince', { at: format.time(heldSince), why: whyHeld(delivery) });
      case 'delivered':
        return lastError === fetchedBySubscriber ? t('fetched', ended) : t('delivered', ended);
      case 'unknown':
        return t('notKnown', ended);
      default:
        return t(state, ended);
    }
  };

  return {
    ofNotification(explanation: Explanation): string {
      const { verdict, delivery } = explanation;
      const isAsJudged = verdict === 'unknown' || (verdict === 'matched') === (delivery !== null);
      return [
        judgement(explanation),
        ...(isAsJudged ? [] : [t(delivery ? 'yetDelivery' : 'yetNone')]),
        ...(delivery ? [situation(delivery)] : []),
      ].join(' ');
    },
    ofForecast(forecast: Pick<Forecast, 'fate' | 'heldFor' | 'behind'> & Judgement): string {
      const { fate, heldFor, behind } = forecast;
      const would = {
        none: () => [],
        sent: () => [t('wouldBeSent')],
        held: () => [t('wouldBeHeld', { why: heldFor === null ? '' : t(heldFor) })],
        'in-line': () => [t('wouldBeHeld', { why: behind === null ? t('order') : t('behind', { id: behind }) })],
        expired: () => [t('wouldExpire')],
        duplicate: () => [t('wouldBeDuplicate')],
      };
      return [judgement(forecast), ...would[fate]()].join(' ');
    },
  };
}
