import type { StoredAlert } from './alert.js';
import type { AlertRules, RuleName } from './alert-rules.js';
import { mostNews, type Audience, type News, type NewsKind, type NoteContent, type Recipient } from './note.js';

const hourMs = 3_600_000;
/** One that comes back in this time after a note about its subject is no news, unless `tellAnew` finds that it is. */
const quietMs = 24 * hourMs;

/** Of these, owners are told where it concerns their subscription; the others are the operator's own. */
const concernsOwners: ReadonlySet<RuleName> = new Set([
  'dead-letters',
  'endpoint-open',
  'subscription-failing',
  'subscription-disabled',
]);

/** Somebody is to be told of it now. */
export interface Due<Known extends StoredAlert = StoredAlert> {
  alert: Known;
  kind: NewsKind;
}

/**
 * Which alerts somebody is to be told of. One that came back within 24 hours of a note is not told of again before
 * that, nor its end, unless `tellAnew` has found that it is news; one that came and went before a note was written not
 * at all. A note that lies ahead is long past: Postgres' clock was set back since.
 * @param alerts those that are open, and those whose end nobody was told of
 * @param lastNoteAt when a note was last written: others that come up soon after it wait, and come together
 */
export function dueNow<Known extends StoredAlert>(
  alerts: readonly Known[],
  { repeatAfterHours, groupSeconds }: Pick<AlertRules, 'repeatAfterHours' | 'groupSeconds'>,
  now: Date,
  lastNoteAt: Date | null,
): Due<Known>[] {
  const ago = (then: Date | null) => (then && then <= now ? now.getTime() - then.getTime() : Infinity);
  if (ago(lastNoteAt) < groupSeconds * 1000) return [];
  const repeatMs = repeatAfterHours === null ? Infinity : repeatAfterHours * hourMs;
  return alerts.flatMap((alert): Due<Known>[] => {
    if (alert.resolvedAt) return alert.isTold ? [{ alert, kind: 'resolved' }] : [];
    if (ago(alert.lastToldAt) < (alert.isTold ? repeatMs : quietMs)) return [];
    return [{ alert, kind: alert.isTold ? 'still-open' : 'opened' }];
  });
}

/** A note for one recipient. */
export interface Written {
  recipient: Recipient;
  content: NoteContent & { alertIds: string[] };
}

/**
 * One note for each recipient, whatever the number of alerts; a second one with those of which it has not got the note
 * before yet: it waits for that, for a day where it is never taken, and all other news may not.
 * @param operators get everything
 * @param ownersOf mail addresses of those whose subscriptions an open alert concerns
 * @param isUnsent whether a note about that alert waits to be sent to the recipient
 * @param tellsOwners whether those are told of the end that were told of the beginning
 */
export function writeNotes(
  due: readonly Due[],
  operators: readonly Recipient[],
  ownersOf: (alert: StoredAlert) => readonly string[],
  isUnsent: (recipient: Recipient, alertId: string) => boolean = () => false,
  tellsOwners = true,
): Written[] {
  const notesFor = (recipient: Recipient, audience: Audience, all: readonly Due[]): Written[] =>
    [false, true].flatMap((waits) => {
      const some = all.filter(({ alert }) => isUnsent(recipient, alert.id) === waits);
      return some.length === 0 ? [] : [noteFor(recipient, audience, some)];
    });
  const ofOperators = new Set(operators.map(({ address }) => address));
  const byOwner = new Map<string, Due[]>();
  for (const each of due) {
    if (!concernsOwners.has(each.alert.rule)) continue;
    // Of the end those are told that were told of the beginning, whoever the owner is by now.
    const toldOfBeginning = tellsOwners ? each.alert.told : [];
    const addresses = each.kind === 'resolved' ? toldOfBeginning : ownersOf(each.alert);
    // Opened, and told already: it is news to operators alone, because those who were told of it are others by now.
    const know = each.kind === 'opened' ? each.alert.told : [];
    for (const address of new Set(addresses)) {
      if (ofOperators.has(address) || know.includes(address)) continue;
      const others = byOwner.get(address);
      if (others) others.push(each);
      else byOwner.set(address, [each]);
    }
  }
  const toOperators = operators.flatMap((recipient) => notesFor(recipient, 'operator', due));
  const toOwners = [...byOwner].flatMap(([address, own]) => notesFor({ channel: 'mail', address }, 'owner', own));
  return [...toOperators, ...toOwners];
}

function noteFor(recipient: Recipient, audience: Audience, due: readonly Due[]): Written {
  const news = due.slice(0, mostNews).map((each) => newsOf(each, audience));
  const alertIds = due.map(({ alert }) => alert.id);
  return { recipient, content: { kind: 'alerts', audience, news, more: due.length - news.length, alertIds } };
}

const newsOf = ({ alert, kind }: Due, audience: Audience): News =>
  ({
    kind,
    alertId: alert.id,
    since: alert.since.toISOString(),
    openedAt: alert.openedAt.toISOString(),
    resolvedAt: alert.resolvedAt?.toISOString() ?? null,
    rule: alert.rule,
    subject: shownSubject(alert),
    // Why a call failed, its owner is not told: it would make of this server a scanner of the ports of its own
    // networks.
    details: audience === 'owner' && 'reason' in alert.details ? { ...alert.details, reason: null } : alert.details,
  }) as News;

/** A callback URL may hold a key. */
const shownSubject = (alert: StoredAlert): string =>
  alert.rule === 'endpoint-open' ? `endpoint/${alert.details.receiver}` : alert.subject;
