import { describe, expect, it } from 'vitest';
import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { EventEmitter } from 'node:events';
import { examineAlarms } from './rabbitmq-findings.amqplib.js';

/** A broker that confirms, or that has an alarm: then it says so when something is published. */
function broker(alarm: string | undefined): ChannelModel {
  const publish = (...[, , , , confirmed]: Parameters<ConfirmChannel['publish']>) => {
    setImmediate(() => (alarm === undefined ? confirmed!(null, {}) : model.emit('blocked', alarm)));
    return true;
  };
  const channel = Object.assign(new EventEmitter(), { publish });
  const model = Object.assign(new EventEmitter(), { createConfirmChannel: () => Promise.resolve(channel) });
  return model as unknown as ChannelModel;
}

describe('an alarm of RabbitMQ', () => {
  it('is seen by what is published', async () => {
    expect(await examineAlarms(broker('low on disk'))).toMatchObject({
      verdict: 'failed',
      found: 'publishing is blocked: low on disk',
    });
  });

  it('is none where that is confirmed', async () => {
    expect(await examineAlarms(broker(undefined))).toMatchObject({ verdict: 'ok' });
  });
});
