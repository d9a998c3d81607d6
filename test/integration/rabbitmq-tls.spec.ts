import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectPlain, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server, type TlsOptions } from 'node:tls';
import { readSettings } from '../../src/config/settings.js';
import { examineRabbitMq } from '../../src/doctor/rabbitmq-findings.amqplib.js';
import { RabbitMqDeliveryQueue } from '../../src/queue/delivery-queue.rabbitmq.js';
import { createQueuePrefix, type TestQueues } from '../support/amqp.js';
import { makeCertificate } from '../support/certificates.js';

const authority = makeCertificate('an authority');
const client = makeCertificate('heraut', { by: authority });
const serverFor = (host: string) => makeCertificate('rabbitmq', { by: authority, hosts: [host] });

describe('RabbitMQ behind TLS', () => {
  let directory: string;
  let queues: TestQueues;
  const servers: Server[] = [];
  const fileOf = (name: string) => join(directory, name);

  beforeAll(() => {
    Logger.overrideLogger(false);
    queues = createQueuePrefix();
    directory = mkdtempSync(join(tmpdir(), 'heraut-tls-'));
    writeFileSync(fileOf('ca.pem'), authority.certificate);
    writeFileSync(fileOf('client.pem'), client.certificate);
    writeFileSync(fileOf('client.key'), client.key);
  });
  afterAll(async () => {
    for (const server of servers) server.close();
    await queues.remove();
    rmSync(directory, { recursive: true });
  });

  /** Takes TLS off, as a listener of RabbitMQ does. @returns the URL of its port, for amqp: or amqps: */
  async function listen(host: string, options: TlsOptions = {}): Promise<(protocol: string, query?: string) => string> {
    const { certificate: cert, key } = serverFor(host);
    const target = new URL(queues.url);
    const server = createServer({ cert, key, ...options }, (socket) => {
      const plain = connectPlain(Number(target.port), target.hostname);
      socket.pipe(plain).pipe(socket);
      for (const end of [socket, plain]) end.on('error', () => [socket, plain].forEach((each) => each.destroy()));
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const { username, password } = target;
    return (protocol, query = '') => `${protocol}//${username}:${password}@127.0.0.1:${port}?${query}`;
  }

  const examine = async (AMQP_URL: string) =>
    (await examineRabbitMq(readSettings({ AMQP_URL, QUEUE_PREFIX: queues.prefix })))[0];

  it('that wants a certificate of the client gets the one that the URL names', async () => {
    const url = await listen('127.0.0.1', { requestCert: true, ca: authority.certificate });
    const ca = `cacertfile=${fileOf('ca.pem')}`;
    const queue = new RabbitMqDeliveryQueue(
      url('amqps:', `${ca}&certfile=${fileOf('client.pem')}&keyfile=${fileOf('client.key')}`),
      queues.prefix,
      1000,
    );
    await queue.open();
    expect(queue.trouble).toBeUndefined();
    await queue.close();
    expect(await examine(url('amqps:', ca))).toMatchObject({ advice: expect.stringContaining('certfile and keyfile') });
  });

  it.each([
    ['is not trusted', 'amqps:', '127.0.0.1', () => '', 'cacertfile'],
    [
      'is for another name',
      'amqps:',
      'other.example',
      () => `cacertfile=${fileOf('ca.pem')}`,
      'as the certificate does',
    ],
    ['is not asked for', 'amqp:', '127.0.0.1', () => '', 'amqps://'],
  ])('whose certificate %s is said to be so', async (_, protocol, host, query, advice) => {
    const url = await listen(host);
    expect(await examine(url(protocol, query()))).toMatchObject({
      verdict: 'failed',
      advice: expect.stringContaining(advice),
    });
  });

  it('is not tried with a file that cannot be read, which is named', async () => {
    const url = (await listen('127.0.0.1'))('amqps:', `cacertfile=${fileOf('absent.pem')}`);
    expect(() => new RabbitMqDeliveryQueue(url, queues.prefix, 1000)).toThrow(/absent\.pem.*cacertfile/);
    expect(await examine(url)).toMatchObject({
      found: expect.stringContaining('absent.pem'),
      advice: expect.stringContaining('cacertfile'),
    });
  });
});
