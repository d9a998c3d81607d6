import { Injectable } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ChannelDirectory } from '../channels/channel-directory.service.js';
import { Config } from '../config/config.module.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import { ValidationProblem, type InvalidParam } from '../infra/http/problem.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { parseNotification, type Misfit, type ParsedNotification, type ParseResult } from './parse-notification.js';

/**
 * Nothing is wrong with a notification but that its channel has other filters, or is not there: it may have been
 * otherwise before.
 */
export class MisfitProblem extends ValidationProblem {
  constructor(
    invalidParams: InvalidParam[],
    /** As it would be. */
    readonly notification: Misfit,
  ) {
    super(invalidParams);
  }
}

/** Reads the request of a publisher, with the channels as they are at this moment. */
@Injectable()
export class PublicationReader {
  private readonly leewaySeconds: number;

  constructor(
    private readonly channels: ChannelDirectory,
    private readonly catalogue: Catalogue,
    private readonly ledgerClock: LedgerClock,
    { settings }: Config,
  ) {
    this.leewaySeconds = settings.TIME_LEEWAY;
  }

  /**
   * @throws {ValidationProblem} or a `MisfitProblem`
   * @throws an error of Postgres, where it could only be refused by what this process knew before
   */
  async read(raw: JsonObject): Promise<ParsedNotification> {
    let result = this.parse(raw);
    if (result.kind === 'invalid' && result.dependsOnClock) {
      // The machine of this process may just have been suspended, or Postgres' clock set. A publisher does not repeat a
      // notification that is refused.
      await this.ledgerClock.compare();
      result = this.parse(raw);
    }
    if (result.kind === 'invalid' && result.dependsOnChannels) {
      // Another process may just have made or changed the channel.
      await this.catalogue.refresh();
      result = this.parse(raw);
    }
    if (result.kind === 'parsed') return result.notification;
    const { invalidParams, misfit } = result;
    throw misfit ? new MisfitProblem(invalidParams, misfit) : new ValidationProblem(invalidParams);
  }

  private parse(raw: JsonObject): ParseResult {
    return parseNotification(raw, {
      findChannel: (name) => this.channels.find(name),
      now: this.ledgerClock.now(),
      leewaySeconds: this.leewaySeconds,
    });
  }
}
