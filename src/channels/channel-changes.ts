import { randomUUID } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import { AuditLog, isAnyChange } from '../audit/audit-log.js';
import { NotFoundProblem } from '../infra/http/problem.js';
import { channelOf, ChannelEntity } from './channel.entity.js';
import type { Channel } from './channel.js';

export type ChannelInput = Pick<ChannelEntity, 'name' | 'documentationLink' | 'filters'>;

export type ChannelRules = Partial<Pick<Channel, 'deduplication' | 'maxAgeSeconds' | 'bodyRetentionDays'>>;

export type ChangesOfChannel = Partial<Omit<ChannelInput, 'name'>> & ChannelRules;

/**
 * All that can be done to channels, within one change of the catalogue that may be about several of them. Each is noted in the audit
 * log.
 */
export class ChannelChanges {
  constructor(
    private readonly manager: EntityManager,
    private readonly version: number,
  ) {}

  /**
   * @returns its id
   * @throws a unique violation when there is a channel of this name
   */
  async create(input: ChannelInput & ChannelRules): Promise<string> {
    // v4, not v7: clients find the base of a resource URL with a pattern that fits v4 only (docs/decisions/0011).
    const id = randomUUID();
    const columns = columnsOf(input);
    await this.manager.insert(ChannelEntity, { ...columns, id, version: this.version });
    await AuditLog.note(this.manager, {
      action: 'channel.created',
      subject: `channel/${id}`,
      before: null,
      after: { ...columns },
    });
    return id;
  }

  /**
   * An undefined field stays as it is.
   * @returns its id; undefined: it is already as these changes make it, and nothing was written
   * @param mustFit throws where these changes cannot be made to the channel as it is
   * @throws {NotFoundProblem}
   */
  async update(
    id: string,
    changes: ChangesOfChannel,
    mustFit: (before: Channel) => void = () => undefined,
  ): Promise<string | undefined> {
    const before = await this.manager.findOneBy(ChannelEntity, { id });
    if (!before) throw noSuchChannel();
    mustFit(channelOf(before));
    const given = Object.fromEntries(Object.entries(columnsOf(changes)).filter(([, value]) => value !== undefined));
    const after: ChannelEntity = { ...before, ...given };
    const noted = { before: audited(before), after: audited(after) };
    const change = { action: 'channel.changed', subject: `channel/${id}`, ...noted };
    if (!isAnyChange(change)) return undefined;
    await this.manager.update(ChannelEntity, id, { ...given, version: this.version });
    await AuditLog.note(this.manager, change);
    return id;
  }
}

export const noSuchChannel = () => new NotFoundProblem('There is no such kanaal.');

const columnsOf = ({
  deduplication,
  maxAgeSeconds,
  ...described
}: Partial<ChannelInput> & ChannelRules): Partial<ChannelEntity> => ({
  ...described,
  ...(deduplication !== undefined && { deduplicateBy: deduplication && [...deduplication.fields] }),
  ...(deduplication && { deduplicateWithin: deduplication.withinSeconds }),
  ...(maxAgeSeconds !== undefined && { maxAge: maxAgeSeconds }),
});

const audited = (channel: ChannelEntity) => ({
  name: channel.name,
  documentationLink: channel.documentationLink,
  filters: channel.filters,
  deduplicateBy: channel.deduplicateBy,
  deduplicateWithin: channel.deduplicateWithin,
  maxAge: channel.maxAge,
  bodyRetentionDays: channel.bodyRetentionDays,
});
