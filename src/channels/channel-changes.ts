import { randomUUID } from 'node:crypto';
import { IsNull, Not, type EntityManager } from 'typeorm';
import { AuditLog, isAnyChange } from '../audit/audit-log.js';
import { givenFields } from '../infra/given-fields.js';
import { ConflictProblem, NotFoundProblem } from '../infra/http/problem.js';
import { timeIn } from '../infra/postgres/time-in.js';
import { channelOf, ChannelEntity } from './channel.entity.js';
import type { Channel } from './channel.js';

export type ChannelInput = Pick<ChannelEntity, 'name' | 'documentationLink' | 'filters'>;

export type ChannelRules = Partial<Pick<Channel, 'deduplication' | 'maxAgeSeconds' | 'bodyRetentionDays'>>;

export type ChangesOfChannel = Partial<Omit<ChannelInput, 'name'>> & ChannelRules;

/**
 * All that can be done to channels, within one change of the catalogue that may be about several of them. Each is noted
 * in the audit log.
 */
export class ChannelChanges {
  constructor(
    private readonly manager: EntityManager,
    private readonly version: number,
  ) {}

  /**
   * A channel that was removed is made again under the id that it had: notifications name it. Their bodies are kept as
   * long as it said, unless the input says otherwise: a publisher, who may make it, could keep what is to be erased.
   * @throws a unique violation when there is a channel of this name
   */
  async create(input: ChannelInput & ChannelRules): Promise<Channel> {
    const { manager, version } = this;
    const columns = columnsOf(input);
    const removed = await manager.findOneBy(ChannelEntity, { name: input.name, deletedAt: Not(IsNull()) });
    // v4, not v7: clients find the base of a resource URL with a pattern that fits v4 only (docs/decisions/0011).
    const id = removed?.id ?? randomUUID();
    if (removed)
      await manager.update(ChannelEntity, id, {
        ...columns,
        deletedAt: null,
        createdAt: await timeIn(manager),
        version,
      });
    else await manager.insert(ChannelEntity, { ...columns, id, version });
    await AuditLog.note(this.manager, {
      action: 'channel.created',
      subject: `channel/${id}`,
      before: null,
      after: { ...(removed?.bodyRetentionDays && { bodyRetentionDays: removed.bodyRetentionDays }), ...columns },
    });
    const { name, documentationLink, filters } = input;
    return channelOf({ ...noRules, ...removed, name, documentationLink, filters, ...givenFields(columns), id });
  }

  /**
   * An undefined field stays as it is.
   * @returns it as it is then; undefined: it is already as these changes make it, and nothing was written
   * @param mustFit throws where these changes cannot be made to the channel as it is
   * @throws {NotFoundProblem}
   */
  async update(
    id: string,
    changes: ChangesOfChannel,
    mustFit?: (before: Channel) => void,
  ): Promise<Channel | undefined> {
    const before = await this.find(id);
    mustFit?.(channelOf(before));
    const given = givenFields(columnsOf(changes));
    const after: ChannelEntity = { ...before, ...given };
    const noted = { before: audited(before), after: audited(after) };
    const change = { action: 'channel.changed', subject: `channel/${id}`, ...noted };
    if (!isAnyChange(change)) return undefined;
    await this.manager.update(ChannelEntity, id, { ...given, version: this.version });
    await AuditLog.note(this.manager, change);
    return channelOf(after);
  }

  /**
   * Its name stays, and how long the bodies of its notifications are kept.
   * @param mustFit throws where the channel as it is may not be removed
   * @throws {NotFoundProblem}
   * @throws {ConflictProblem} while subscriptions name it
   */
  async remove(id: string, mustFit: (before: Channel) => void): Promise<void> {
    const { manager, version } = this;
    const before = await this.find(id);
    mustFit(channelOf(before));
    const [found] = await manager.query<[{ count: number }]>(subscriptionsAbout, [before.name]);
    if (found.count > 0) throw inUse(found.count);
    await manager.update(ChannelEntity, id, {
      ...{ documentationLink: '', filters: [], deduplicateBy: null, maxAge: null },
      deletedAt: await timeIn(manager),
      version,
    });
    const noted = { before: audited(before), after: null };
    await AuditLog.note(manager, { action: 'channel.deleted', subject: `channel/${id}`, ...noted });
  }

  private async find(id: string): Promise<ChannelEntity> {
    const channel = await this.manager.findOneBy(ChannelEntity, { id, deletedAt: IsNull() });
    if (!channel) throw noSuchChannel();
    return channel;
  }
}

/** Disabled ones too. Reads every subscription: an index of what they name would be written with each of them. */
const subscriptionsAbout = `
  SELECT count(*)::int AS count FROM subscription
  WHERE deleted_at IS NULL AND EXISTS (SELECT FROM json_array_elements(channels) AS entry WHERE entry ->> 'channel' = $1)`;

const inUse = (count: number) =>
  new ConflictProblem(
    'channel-in-use',
    `${count === 1 ? 'A subscription names' : `${count} subscriptions name`} this channel; delete or change ${count === 1 ? 'it' : 'them'} first.`,
  );

/** Of a channel that was made without any. */
const noRules = { deduplicateBy: null, deduplicateWithin: 0, maxAge: null, bodyRetentionDays: null };

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
