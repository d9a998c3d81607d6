import { EventEmitter } from 'node:events';
import type { FastifyReply } from 'fastify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { defaultAlertRules } from '../alerts/alert-rules.js';
import type { Catalogue } from '../catalogue/catalogue.service.js';
import type { Export, Exported } from './export.service.js';
import { KeptExports } from './kept-exports.service.js';

describe('the configuration that is read', () => {
  let exports: KeptExports;
  let edition: number;
  let alertRules: typeof defaultAlertRules;
  let reads: number;
  let subscriptions: object[];
  const whole = (): Exported => ({
    applications: [{ clientId: 'zrc' }],
    channels: [],
    subscriptions,
    retryPolicy: { maxAttempts: 3 },
    alertRules,
  });

  beforeEach(() => {
    [edition, reads, alertRules] = [1, 0, { ...defaultAlertRules }];
    subscriptions = Array.from({ length: 45 }, (_, nr) => ({ id: `é${nr}` }));
    const catalogue = {
      get edition() {
        return edition;
      },
      refresh: () => Promise.resolve(),
    };
    const exported = {
      alertRules: () => Promise.resolve(alertRules),
      read: () => {
        reads++;
        return Promise.resolve(whole());
      },
    };
    exports = new KeptExports(catalogue as Catalogue, exported as unknown as Export);
  });
  afterEach(() => exports.onModuleDestroy());

  const newReply = () =>
    ({ raw: Object.assign(new EventEmitter(), { destroyed: false }), type: () => {} }) as unknown as FastifyReply;
  const json = () => exports.json('caller', newReply());
  const text = () => exports.text('caller', newReply());

  it('has all of it, as JSON and as the text of a file', async () => {
    expect((await json()).toString()).toBe(JSON.stringify(whole()));
    const answer = JSON.parse((await text()).toString()) as { text: string };
    expect(parse(answer.text)).toEqual(JSON.parse(JSON.stringify(whole())));
    subscriptions = [];
    edition++;
    expect((await json()).toString()).toBe(JSON.stringify(whole()));
  });

  it('has each character of a long text, wherever that is cut into parts', async () => {
    for (const before of ['', ' ']) {
      subscriptions = [{ label: `${before}${'😀'.repeat(100_000)}"\\` }];
      edition++;
      const answer = JSON.parse((await text()).toString()) as { text: string };
      expect(parse(answer.text)).toEqual(JSON.parse(JSON.stringify(whole())));
    }
  });

  it('is made once for all who ask while nothing changes, and each is answered with the same bytes', async () => {
    for (const ask of [json, text]) {
      reads = 0;
      const bodies = await Promise.all(Array.from({ length: 30 }, ask));
      expect(new Set(bodies).size).toBe(1);
      expect(reads).toBe(1);
    }
  });

  it('is made anew after a change of the catalogue, or of the rules of alerts, which are not of it', async () => {
    const before = await json();
    edition++;
    const after = await json();
    expect(after).not.toBe(before);
    alertRules = { ...alertRules, deadLetters: { ...alertRules.deadLetters, count: 7 } };
    expect((await json()).toString()).toBe(JSON.stringify(whole()));
  });
});
