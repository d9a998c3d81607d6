import { Body, Post } from '@nestjs/common';
import type * as z from 'zod';
import { AdminController } from '../auth/auth.decorators.js';
import { ReadsMuch } from '../auth/caller-turn.interceptor.js';
import { NeedsUserRole } from '../auth/user-roles.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ChannelDirectory } from '../channels/channel-directory.service.js';
import { checkInput } from '../infra/http/check-input.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { lowestIdAt, timeOfId } from '../ledger/partitions.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { checkChannels, filtersPreviewInput } from '../subscriptions/subscription-input.js';
import { FiltersPreview, filtersPreviewOutput, newestNotifications, type NotificationRow } from './filters-preview.js';

const hourMs = 3_600_000;
/** Read by one statement: with the largest bodies that are read, 16 MB. */
const rowsTogether = 250;
const mostRows = 50_000;
const mostMs = 1000;

/** Tells which notifications other filters would get. */
@AdminController('subscriptions', 'subscriptions/preview')
export class FiltersPreviewController {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly channels: ChannelDirectory,
    private readonly ledgerClock: LedgerClock,
    private readonly postgres: Postgres,
  ) {}

  @Post()
  @NeedsUserRole('viewer')
  @ReadsMuch()
  @AdminOperation({
    id: 'subscription_preview',
    summary:
      'How many notifications of the last hour a subscription with these filters would have got. Nothing is kept.',
    description:
      'Looks from now backwards, for a second at most: `from` says how far it came. Whether one is too old, or equal to an earlier one, is not asked.',
    body: filtersPreviewInput,
    status: 200,
    answer: filtersPreviewOutput,
  })
  async preview(@Body() body: unknown): Promise<z.output<typeof filtersPreviewOutput>> {
    const { channels } = checkInput(filtersPreviewInput, body);
    await this.catalogue.refresh();
    checkChannels(channels, (name) => this.channels.find(name));
    const to = this.ledgerClock.now();
    const preview = new FiltersPreview(channels);
    const from = await this.look(preview, to);
    return preview.result(from, to, from === to - hourMs);
  }

  /** @returns how far back it came, in milliseconds since 1970 */
  private async look(preview: FiltersPreview, to: number): Promise<number> {
    const since = to - hourMs;
    const giveUpAt = performance.now() + mostMs;
    let before = lowestIdAt(to + 1);
    for (let looked = 0; looked < mostRows; looked += rowsTogether) {
      const rows = await this.read(preview.channels, since, before);
      for (const row of rows) preview.look(row);
      if (rows.length < rowsTogether) return since;
      before = rows.at(-1)!.id;
      if (performance.now() >= giveUpAt) break;
    }
    return timeOfId(before);
  }

  private read(channels: string[], since: number, before: string): Promise<NotificationRow[]> {
    const values = { channels, since: lowestIdAt(since), before, rows: rowsTogether };
    return this.postgres.queryAside(newestNotifications, values);
  }
}
