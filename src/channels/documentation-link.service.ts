import { Injectable, Logger } from '@nestjs/common';
import { Agent, request } from 'undici';
import { Config } from '../config/config.module.js';
import { AddressRefused, RefusedAddresses } from '../infra/http/refused-addresses.js';

const timeoutMs = 10_000;

/**
 * Fetches a channel's documentation (setting DOCUMENTATION_LINK_CHECK). Off by default: it makes this server call any
 * URL a publisher names, and documentation is often deployed after the program that registers the channel.
 */
@Injectable()
export class DocumentationLinkCheck {
  private readonly logger = new Logger(DocumentationLinkCheck.name);
  private readonly mode: 'off' | 'warn' | 'enforce';
  private readonly refusedAddresses: RefusedAddresses;

  constructor({ settings }: Config) {
    this.mode = settings.DOCUMENTATION_LINK_CHECK;
    this.refusedAddresses = new RefusedAddresses(settings);
  }

  /** Why the link must be refused, if so. */
  async refusal(link: string): Promise<string | undefined> {
    if (this.mode === 'off' || link === '') return undefined;
    const trouble = await this.fetch(link);
    if (trouble === undefined || this.mode === 'enforce') return trouble;
    this.logger.warn({ event: 'channel.documentation-unreachable', link, trouble });
    return undefined;
  }

  private async fetch(link: string): Promise<string | undefined> {
    const url = new URL(link);
    if (this.refusedAddresses.isRefusedHost(url.hostname)) return new AddressRefused(url.hostname).message;
    const agent = new Agent({ connect: { timeout: timeoutMs, lookup: this.refusedAddresses.lookup } });
    try {
      const response = await request(url, { dispatcher: agent, signal: AbortSignal.timeout(timeoutMs) });
      return response.statusCode === 200 ? undefined : `answered ${response.statusCode}, not 200`;
    } catch (error) {
      return `cannot be fetched: ${(error as Error).message}`;
    } finally {
      // The body is not read; destroying the connection ends it.
      await agent.destroy();
    }
  }
}
