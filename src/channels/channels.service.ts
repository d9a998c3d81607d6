import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { AuditLog } from '../audit/audit-log.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { NotFoundProblem, ValidationProblem } from '../infra/http/problem.js';
import { isUniqueViolation } from '../infra/postgres/postgres-errors.js';
import { ChannelDirectory } from './channel-directory.service.js';
import { ChannelEntity } from './channel.entity.js';
import type { Channel } from './channel.js';

export type ChannelInput = Pick<ChannelEntity, 'name' | 'documentationLink' | 'filters'>;

export type ChannelRules = Partial<Pick<Channel, 'deduplication' | 'maxAgeSeconds' | 'bodyRetentionDays'>>;

/** Reads from memory, after loading the changes of other processes: a channel that was answered with 201 is found. */
@Injectable()
export class ChannelsService {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly directory: ChannelDirectory,
  ) {}

  async list(name?: string): Promise<Channel[]> {
    await this.catalogue.refresh();
    if (name === undefined) return this.directory.list();
    const channel = this.directory.find(name);
    return channel ? [channel] : [];
  }

  /** @throws {NotFoundProblem} */
  async get(id: string): Promise<Channel> {
    await this.catalogue.refresh();
    return this.known(id);
  }

  /** @throws {ValidationProblem} code `unique` when there is a channel of this name */
  async create(input: ChannelInput): Promise<Channel> {
    // v4, not v7: clients find the base of a resource URL with a pattern that fits v4 only (docs/decisions/0011).
    const id = randomUUID();
    try {
      await this.catalogue.change(async (manager, version) => {
        await manager.insert(ChannelEntity, { ...input, id, version });
        await AuditLog.note(manager, {
          action: 'channel.created',
          subject: `channel/${id}`,
          before: null,
          after: input,
        });
      });
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw new ValidationProblem([
        { name: 'naam', code: 'unique', reason: 'There is a kanaal with this name already.' },
      ]);
    }
    return this.known(id);
  }

  /**
   * An undefined field stays as it is.
   * @throws {NotFoundProblem}
   */
  async update(id: string, changes: Partial<Omit<ChannelInput, 'name'>>): Promise<Channel> {
    return this.change(id, changes);
  }

  /**
   * The operator's rules for its notifications; an undefined field stays as it is.
   * @throws {NotFoundProblem}
   */
  async setRules(id: string, { deduplication, maxAgeSeconds, bodyRetentionDays }: ChannelRules): Promise<Channel> {
    return this.change(id, {
      ...(deduplication !== undefined && { deduplicateBy: deduplication && [...deduplication.fields] }),
      ...(deduplication && { deduplicateWithin: deduplication.withinSeconds }),
      ...(maxAgeSeconds !== undefined && { maxAge: maxAgeSeconds }),
      ...(bodyRetentionDays !== undefined && { bodyRetentionDays }),
    });
  }

  private async change(id: string, changes: Partial<ChannelEntity>): Promise<Channel> {
    await this.catalogue.change(async (manager, version) => {
      const before = await manager.findOneBy(ChannelEntity, { id });
      if (!before) throw notFound();
      await manager.update(ChannelEntity, id, { ...changes, version });
      const after = await manager.findOneByOrFail(ChannelEntity, { id });
      const noted = { before: audited(before), after: audited(after) };
      await AuditLog.note(manager, { action: 'channel.changed', subject: `channel/${id}`, ...noted });
    });
    return this.known(id);
  }

  private known(id: string): Channel {
    const channel = this.directory.get(id);
    if (!channel) throw notFound();
    return channel;
  }
}

const notFound = () => new NotFoundProblem('There is no such kanaal.');

const audited = (channel: ChannelEntity) => ({
  name: channel.name,
  documentationLink: channel.documentationLink,
  filters: channel.filters,
  deduplicateBy: channel.deduplicateBy,
  deduplicateWithin: channel.deduplicateWithin,
  maxAge: channel.maxAge,
  bodyRetentionDays: channel.bodyRetentionDays,
});
