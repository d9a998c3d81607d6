import { Injectable } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ValidationProblem } from '../infra/http/problem.js';
import { isUniqueViolation } from '../infra/postgres/postgres-errors.js';
import {
  ChannelChanges,
  noSuchChannel,
  type ChangesOfChannel,
  type ChannelInput,
  type ChannelRules,
} from './channel-changes.js';
import { ChannelAllowance } from './channel-allowance.service.js';
import { ChannelDirectory } from './channel-directory.service.js';
import type { Channel } from './channel.js';

/** Reads from memory, after loading the changes of other processes: a channel that was answered with 201 is found. */
@Injectable()
export class ChannelsService {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly directory: ChannelDirectory,
    private readonly allowance: ChannelAllowance,
  ) {}

  async list(name?: string): Promise<Channel[]> {
    await this.catalogue.refresh();
    if (name === undefined) return this.directory.list();
    const channel = this.directory.find(name);
    return channel ? [channel] : [];
  }

  /** All of them, from memory alone: for callers that know it to be new enough. */
  listKnown(): Channel[] {
    return this.directory.list();
  }

  /** @throws {NotFoundProblem} */
  async get(id: string): Promise<Channel> {
    await this.catalogue.refresh();
    const channel = this.directory.get(id);
    if (!channel) throw noSuchChannel();
    return channel;
  }

  /**
   * @param nameField the field of the name in the caller's API
   * @throws {ValidationProblem} code `unique` when there is a channel of this name
   * @throws {ConflictProblem} where there would be more than there may be
   */
  async create(input: ChannelInput & ChannelRules, nameField: 'naam' | 'name'): Promise<Channel> {
    try {
      const created = await this.catalogue.change((manager, version) =>
        this.allowance.within(manager, () => new ChannelChanges(manager, version).create(input)),
      );
      return this.latest(created);
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw new ValidationProblem([
        { name: nameField, code: 'unique', reason: 'There is a kanaal with this name already.' },
      ]);
    }
  }

  /**
   * Changes its publisher's fields, and the operator's rules for its notifications; an undefined field stays as it is.
   * @param mustFit throws where these changes cannot be made to the channel as it is
   * @throws {NotFoundProblem}
   * @throws {ConflictProblem} where all of them would take more than they may
   */
  async update(id: string, changes: ChangesOfChannel, mustFit?: (before: Channel) => void): Promise<Channel> {
    const changed = await this.catalogue.changeIfNeeded((manager, version) =>
      this.allowance.within(manager, () => new ChannelChanges(manager, version).update(id, changes, mustFit)),
    );
    // Where there was nothing to change, another process may have made this change a moment ago.
    return changed === undefined ? this.get(id) : this.latest(changed);
  }

  /**
   * Nothing is published on it any more. Earlier notifications are delivered, found and kept as before.
   * @param mustFit throws where the channel as it is may not be removed
   * @throws {NotFoundProblem}
   * @throws {ConflictProblem} while subscriptions name it
   */
  async remove(id: string, mustFit: (before: Channel) => void): Promise<void> {
    await this.catalogue.change((manager, version) => new ChannelChanges(manager, version).remove(id, mustFit));
  }

  /** As it was made or changed, where it was removed since: a change that happened is not answered with a 404. */
  private latest(after: Channel): Channel {
    return this.directory.get(after.id) ?? after;
  }
}
