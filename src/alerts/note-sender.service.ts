import { Injectable, Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { Postgres } from '../infra/postgres/postgres.js';
import { AlertChannels } from './alert-channels.js';
import { notesCounted } from './alerts.metrics.js';
import { claimDue, endFailed, noteSent, testSent, type ClaimedNote } from './note-rows.js';
import type { NoteChannel, Recipient, SendResult } from './note.js';
import { retryDelayMs } from './retry-note.js';

export interface Tried extends Recipient {
  result: SendResult;
}

/** Sends the notes that are due. Any number of processes may: each note is given to one of them, with a lease. */
@Injectable()
export class NoteSender {
  private readonly logger = new Logger('Alerts');

  constructor(
    private readonly postgres: Postgres,
    private readonly channels: AlertChannels,
  ) {}

  /** Those that this process can send by. A server that hangs takes up to 100 s, so none may wait for another. */
  get channelNames(): readonly NoteChannel[] {
    return this.channels.names;
  }

  /**
   * Sends what is due by one channel, until nothing is. A channel that fails is left alone until the next call: a
   * server that hangs would keep each note waiting. A recipient that is not accepted keeps none from the others. A note
   * that was sent and not written as sent, because this process died in between, is sent once more.
   * @returns how many were sent
   */
  async sendDue(channel: NoteChannel, stopping: AbortSignal): Promise<number> {
    let sent = 0;
    while (!stopping.aborted) {
      const note = await this.postgres.transactionAside((query) => claimDue(query, channel));
      if (!note) break;
      const result = await this.channels.send(note, stopping);
      // Our own stop ended it: its lease ends, and another process sends it.
      if (!result.isSent && stopping.aborted) break;
      await this.end(note, result);
      if (result.isSent) sent++;
      else if (result.failure === 'channel') break;
    }
    return sent;
  }

  /** Sends a test to every operator at once, beside all that is due. Where it arrives, what waits goes as well. */
  async sendTest(): Promise<Tried[]> {
    const content = { kind: 'test', audience: 'operator', news: [], more: 0 } as const;
    const never = new AbortController().signal;
    return Promise.all(
      this.channels.operators.map(async (recipient) => {
        const note = { ...recipient, id: randomUUID(), content: { ...content, news: [] } };
        const result = await this.channels.send(note, never);
        if (result.isSent) await this.postgres.transactionAside((query) => testSent(query, note));
        count(recipient.channel, result.isSent ? 'sent' : 'failed');
        return { ...recipient, result };
      }),
    );
  }

  private async end(note: ClaimedNote, result: SendResult): Promise<void> {
    const { id, channel, attempts, ageMs } = note;
    if (result.isSent) {
      count(channel, 'sent');
      await this.postgres.transactionAside((query) => noteSent(query, note));
      return;
    }
    const delayMs = retryDelayMs(attempts, ageMs, result.failure === 'recipient-refused');
    count(channel, delayMs === null ? 'given-up' : 'failed');
    const { reason } = result;
    this.logger.warn({
      event: 'alert.note-not-sent',
      noteId: id,
      channel,
      attempts,
      reason,
      isGivenUp: delayMs === null,
    });
    const values = { id, attempts, delay_ms: delayMs, error: reason };
    await this.postgres.transactionAside((query) => query(endFailed, values));
  }
}

const count = (channel: NoteChannel, result: 'sent' | 'failed' | 'given-up') => notesCounted.inc({ channel, result });
