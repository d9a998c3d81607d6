import { describe, expect, it } from 'vitest';
import { connectionAdvice } from './connection-advice.js';

describe('advice about a connection to RabbitMQ', () => {
  it.each([
    Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
    new Error('Socket closed abruptly during opening handshake'),
  ])('that ends at once asks first whether it runs: a proxy answers for one that is down (%s)', (error) => {
    expect(connectionAdvice(error)).toMatch(/^Is RabbitMQ running .*amqps:/);
  });

  it('says of a certificate that it may have ended', () => {
    const error = Object.assign(new Error('certificate has expired'), { code: 'CERT_HAS_EXPIRED' });
    expect(connectionAdvice(error)).toMatch(/cacertfile.*has ended/);
  });
});
