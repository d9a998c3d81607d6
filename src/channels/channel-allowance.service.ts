import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Config } from '../config/config.module.js';
import { ConflictProblem } from '../infra/http/problem.js';
import { queryOf } from '../infra/postgres/query-of.js';
import { readShare, type ChannelShare } from './channel-share.js';

interface ShareRefusal {
  code: 'too-many-channels' | 'channels-too-large';
  reason: string;
}

/**
 * Keeps all channels together within the settings, or one publisher could fill the memory of every process with them,
 * until none can start. Where there are more already, they may become smaller, and stay as they are otherwise
 * (docs/decisions/0088).
 */
@Injectable()
export class ChannelAllowance {
  private readonly most: ChannelShare;

  constructor({ settings }: Config) {
    this.most = { channels: settings.CHANNELS_MAX, bytes: settings.CHANNEL_BYTES_MAX };
  }

  /**
   * Runs a change of channels within one of the catalogue: no other is under way then, so of two at once the second
   * finds the first.
   * @throws {ConflictProblem} where there would be more than there may be
   */
  async within<T>(manager: EntityManager, work: () => Promise<T>): Promise<T> {
    const before = await readShare(queryOf(manager));
    const result = await work();
    const [refusal] = this.refusals(before, await readShare(queryOf(manager)));
    if (refusal) throw new ConflictProblem(refusal.code, refusal.reason);
    return result;
  }

  refusals(before: ChannelShare, after: ChannelShare): ShareRefusal[] {
    const { channels, bytes } = this.most;
    const refusals: ShareRefusal[] = [];
    if (after.channels > before.channels && after.channels > channels)
      refusals.push({
        code: 'too-many-channels',
        reason: `There would be ${after.channels} channels; there may be ${channels} (CHANNELS_MAX).`,
      });
    if (after.bytes > before.bytes && after.bytes > bytes)
      refusals.push({
        code: 'channels-too-large',
        reason: `The channels would take about ${after.bytes} bytes of the memory of each process; all of them may take ${bytes} (CHANNEL_BYTES_MAX).`,
      });
    return refusals;
  }
}
