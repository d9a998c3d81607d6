import * as z from 'zod';
import { statement } from '../infra/postgres/statement.js';
import { timeOfId } from '../ledger/partitions.js';
import { canonicalName } from '../channels/filter-names.js';
import { asJudged, kenmerkenOf } from '../publishing/characteristics-of.js';
import { demandsOf, meets, type Demands } from '../subscriptions/match-filters.js';
import type { SubscribedChannel } from '../subscriptions/subscription.js';

/** In bytes. Of a larger body the characteristics are not read. */
const largestBody = 65_536;

/** The newest notifications below an id, whatever their channel: so a rare channel costs no more than a busy one. */
export const newestNotifications = statement(
  'preview-filters',
  `SELECT id, channel,
     CASE WHEN channel = ANY ($channels::text[]) AND octet_length(body) <= ${largestBody} THEN body END AS body
   FROM notification WHERE id >= $since::uuid AND id < $before::uuid ORDER BY id DESC LIMIT $rows::int`,
);

export interface NotificationRow {
  id: string;
  channel: string;
  body: string | null;
}

const mostInSample = 10;
/** Of one notification in the sample. */
const mostCharacteristics = 20;

export const filtersPreviewOutput = z
  .strictObject({
    matched: z.int().describe('Notifications that it would have got, of those that were looked at.'),
    looked: z.int().describe('Notifications of its channels that were looked at.'),
    notRead: z.int().describe('Of these, those that are erased, or larger than 64 KB: not counted as matched.'),
    from: z.iso.datetime().describe('How far back was looked.'),
    to: z.iso.datetime(),
    isWholeHour: z.boolean().describe('false: there were too many to look through the hour in a second.'),
    sample: z
      .array(
        z.strictObject({
          id: z.uuid(),
          channel: z.string(),
          acceptedAt: z.iso.datetime(),
          characteristics: z.record(z.string(), z.string()).describe(`The first ${mostCharacteristics}.`),
        }),
      )
      .describe(`The newest that it would have got, ${mostInSample} at most.`),
  })
  .meta({ id: 'FiltersPreview' });

type Preview = z.output<typeof filtersPreviewOutput>;

/**
 * Counts the notifications that a subscription with these channels and filters would have got, of those that it is
 * shown.
 */
export class FiltersPreview {
  private readonly demands = new Map<string, Demands[]>();
  private matched = 0;
  private looked = 0;
  private notRead = 0;
  private readonly sample: Preview['sample'] = [];

  constructor(channels: readonly SubscribedChannel[]) {
    for (const entry of channels)
      this.demands.set(entry.channel, [...(this.demands.get(entry.channel) ?? []), demandsOf(entry)]);
  }

  get channels(): string[] {
    return [...this.demands.keys()];
  }

  look({ id, channel, body }: NotificationRow): void {
    const alternatives = this.demands.get(channel);
    if (!alternatives) return;
    this.looked++;
    const kenmerken = kenmerkenOf(body);
    const judged = kenmerken && asJudged(kenmerken);
    if (!judged) this.notRead++;
    else if (alternatives.some((demands) => meets(demands, judged))) {
      this.matched++;
      if (this.sample.length >= mostInSample) return;
      const first = Object.entries(kenmerken).slice(0, mostCharacteristics);
      const shown = Object.fromEntries(first.map(([name, value]) => [canonicalName(name), value]));
      const acceptedAt = new Date(timeOfId(id)).toISOString();
      this.sample.push({ id, channel, acceptedAt, characteristics: shown });
    }
  }

  result(from: number, to: number, isWholeHour: boolean): Preview {
    const { matched, looked, notRead, sample } = this;
    const [fromText, toText] = [new Date(from).toISOString(), new Date(to).toISOString()];
    return { matched, looked, notRead, from: fromText, to: toText, isWholeHour, sample };
  }
}
