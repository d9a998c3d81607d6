import { beforeEach, describe, expect, it } from 'vitest';
import type { NamedIdentity } from '../credentials/credentials.js';
import type { Call } from './call.js';
import { OpenCalls } from './open-calls.js';
import { Connection } from './connection.js';
import type { WebhookResponse } from './webhook-client.js';

const outbound = { proxyFailingMs: () => 0, isInLine: () => false };

describe('bodies that are read on after a 2xx was told', () => {
  let calls: OpenCalls;
  let told: WebhookResponse[];
  /** Of the calls whose connection was cut. */
  let cut: string[];

  beforeEach(() => {
    calls = new OpenCalls(outbound);
    told = [];
    cut = [];
  });

  /** The head of an answer is there, and its body is not. */
  function answer(origin: string): Call {
    const call = calls.open(origin, { timeoutMs: 10_000 }, (response) => told.push(response));
    call.begin(false, () => cut.push(origin));
    call.head(200, {});
    return call;
  }
  const answerMany = (origin: string, count: number) => Array.from({ length: count }, () => answer(origin));

  it('are no more of one origin than it leaves to others, and each answer counts all the same', () => {
    answerMany('http://drips', 200);
    expect(told.filter(({ kind }) => kind === 'answered')).toHaveLength(200);
    expect(cut).toHaveLength(200 - 64);
  });

  it('cost no other origin its connections, although one uses up all that it may have', () => {
    answerMany('http://drips', 200);
    cut = [];
    for (let nr = 0; nr < 100; nr++) answerMany('http://well', 16).forEach((call) => call.complete());
    expect(cut).toEqual([]);
  });

  it('leave a place to the next origin, however many drip', () => {
    for (let nr = 0; nr < 5; nr++) answerMany(`http://drips-${nr}`, 200);
    cut = [];
    answer('http://well').complete();
    expect(cut).toEqual([]);
  });

  it('count no more once they have come, or were cut', () => {
    for (let round = 0; round < 3; round++) {
      const open = answerMany('http://drips', 100);
      expect(cut).toHaveLength(36);
      cut = [];
      for (const call of open) call.complete();
    }
    expect((Reflect.get(calls, 'readOnOf') as Map<string, number>).size).toBe(0);
  });
});

describe('a machine that has no more files or ports', () => {
  const noFiles = Object.assign(new Error('connect EMFILE'), { code: 'EMFILE' });
  let calls: OpenCalls;
  let told: WebhookResponse[];
  const open = (origin = 'http://receiver') =>
    calls.open(origin, { timeoutMs: 10_000 }, (response) => told.push(response));

  beforeEach(() => ([calls, told] = [new OpenCalls(outbound), []]));

  it('postpones a call, and knows for how long it could not reach its receiver', () => {
    open().failWith(noFiles);
    open().failWith(noFiles);
    expect(told[0]).toMatchObject({ kind: 'postponed', reason: 'EMFILE: connect EMFILE', wasSent: false });
    const [first, second] = told as { forMs: number }[];
    expect(second!.forMs).toBeGreaterThan(first!.forMs);
  });

  it('counts from its next failure once an answer came, and for each receiver by itself', () => {
    open().failWith(noFiles);
    const well = open();
    well.begin(false, () => {});
    well.head(204, {});
    const before = performance.now();
    open().failWith(noFiles);
    open('http://another').failWith(noFiles);
    const sinceMs = performance.now() - before;
    for (const { forMs } of told.slice(2) as { forMs: number }[]) expect(forMs).toBeLessThanOrEqual(sinceMs);
  });

  it('has failed a call that was being sent: it may have arrived', () => {
    const sent = open();
    sent.begin(false, () => {});
    sent.failWith(Object.assign(new Error('write ENOBUFS'), { code: 'ENOBUFS' }));
    expect(told).toMatchObject([{ kind: 'unanswered', wasSent: true, isOurs: true }]);
  });
});

describe('a call whose receiver has a name', () => {
  let inLine: Set<string>;
  let calls: OpenCalls;
  let told: WebhookResponse[];
  let connectTo: (address: string) => void;
  /** With ten seconds, in line for the look-up of its name. */
  let call: Call;

  beforeEach(() => {
    [inLine, told] = [new Set(['receiver.example']), []];
    calls = new OpenCalls({ ...outbound, isInLine: (name) => inLine.has(name) });
    const connection = new Connection(() => ({
      on: (_event, listener) => (connectTo = (address) => listener(address, 443)),
      destroy: () => {},
    }));
    call = calls.open('https://receiver.example', { timeoutMs: 10_000 }, (response) => told.push(response));
    call.carriedBy(connection, () => connection.stopConnecting());
    connection.connect({ hostname: 'receiver.example', protocol: 'https:', port: '' }, () => {});
  });

  it('waits for the look-up of others for half of its time, and is then made again later', () => {
    calls.endOverdue(call.halfTime - 1);
    expect(told).toEqual([]);
    calls.endOverdue(call.halfTime);
    const reason = 'LOOKUP_BUSY: too many names are being looked up';
    expect(told).toMatchObject([{ kind: 'postponed', reason, wasSent: false }]);
  });

  it('has waited for these also where the process stood still until all of its time was over', () => {
    calls.endOverdue(call.deadline);
    expect(told).toMatchObject([{ kind: 'postponed' }]);
  });

  it('waits for its own look-up, and for its receiver, until its time is over', () => {
    inLine.clear();
    calls.endOverdue(call.deadline - 1);
    connectTo('192.0.2.1');
    // Another call wants the name again.
    inLine.add('receiver.example');
    calls.endOverdue(call.deadline - 1);
    expect(told).toEqual([]);
    calls.endOverdue(call.deadline);
    expect(told).toMatchObject([{ kind: 'unanswered', reason: 'no answer within 10 s', isOurs: false }]);
  });
});

describe('a call whose connection is closed before its answer', () => {
  const reset = Object.assign(new Error('read'), { code: 'ECONNRESET' });
  const ownCertificate = { id: 'identity', expiresAt: null, certificate: 'certificate', key: 'key' };
  const ownAuthority = { id: 'identity', expiresAt: null, authority: 'authority' };
  let told: WebhookResponse[];

  beforeEach(() => (told = []));

  function open(origin: string, tls?: NamedIdentity, hasAsked = false): Call {
    const call = new OpenCalls(outbound).open(origin, { timeoutMs: 10_000, tls }, (response) => told.push(response));
    const connection = new Connection(() => undefined);
    connection.hasAskedForCertificate = hasAsked;
    call.carriedBy(connection, () => {});
    return call;
  }

  it('was refused for its certificate, or the lack of one, where it was asked for one', () => {
    for (const tls of [undefined, ownAuthority]) {
      const call = open('https://receiver', tls, true);
      call.begin(false, () => {});
      call.failWith(reset);
    }
    const reason = 'ECONNRESET: read, after it was asked for a client certificate';
    const refused = { kind: 'unanswered', reason, wasSent: true, isUntrusted: true, isOurs: false };
    expect(told).toMatchObject([refused, refused]);
  });

  it('may have been refused for the certificate that it shows, also before the connection was made', () => {
    open('https://receiver', ownCertificate).failWith(reset);
    open('https://receiver', ownCertificate).closed();
    expect(told).toMatchObject([
      { reason: 'ECONNRESET: read', wasSent: false, isUntrusted: true },
      { reason: 'the connection was closed', isUntrusted: true },
    ]);
  });

  it('says something of its receiver where nobody has asked for a certificate or shown one, and where an answer had begun', () => {
    open('https://receiver').failWith(reset);
    open('https://receiver', ownAuthority).closed();
    open('http://receiver', ownCertificate).failWith(reset);
    const answering = open('https://receiver', ownCertificate, true);
    answering.begin(false, () => {});
    answering.firstByte();
    answering.failWith(reset);
    expect(told).toMatchObject(Array(4).fill({ kind: 'unanswered', isUntrusted: false, isOurs: false }));
  });

  it('says something of its receiver where that does not answer in time, whatever certificate it was shown', () => {
    const calls = new OpenCalls(outbound);
    const call = calls.open('https://receiver', { timeoutMs: 10_000, tls: ownCertificate }, (each) => told.push(each));
    calls.endOverdue(call.deadline);
    expect(told).toMatchObject([{ reason: 'no answer within 10 s', isUntrusted: false }]);
  });
});

describe('a process that stops', () => {
  it('abandons its calls, and begins none after that', () => {
    const calls = new OpenCalls(outbound);
    const told: WebhookResponse[] = [];
    const open = () => calls.open('http://receiver', { timeoutMs: 10_000 }, (response) => told.push(response));
    expect(open().isOver).toBe(false);
    calls.abandonAll();
    expect(open().isOver).toBe(true);
    expect(told).toMatchObject([
      { kind: 'abandoned', wasSent: false },
      { kind: 'abandoned', wasSent: false },
    ]);
  });
});
