import { EventEmitter } from 'node:events';
import type { FastifyReply } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import type { Application } from '../auth/application.js';
import type { Catalogue } from '../catalogue/catalogue.service.js';
import { KeptAnswers } from '../catalogue/kept-answers.service.js';
import type { SubscriptionAnswers } from '../subscriptions/subscription-answers.service.js';
import type { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import type { OpenEndpoints } from './open-endpoints.service.js';
import { endpointsOf, type Callback } from './origin.js';
import { SubscriptionListController } from './subscription-list.controller.js';

describe('the list of parked subscriptions', () => {
  let kept: KeptAnswers;
  afterEach(() => kept.onModuleDestroy());

  it('is of the endpoints that were open when it was asked for, whichever are by the time that it is made', async () => {
    const subscriptions = ['one', 'two'].map((id) => ({ id, callbackUrl: `https://${id}.example`, credentials: {} }));
    const only = (id: string) => new Map([[`https://${id}.example`, {}]]);
    let open = only('one');
    /** Endpoints are read each second, also while the catalogue is. */
    let meanwhile = () => {};
    kept = new KeptAnswers({
      edition: 1,
      refresh: () => Promise.resolve(meanwhile()),
    } as Partial<Catalogue> as Catalogue);
    const openEndpoints = {
      get all() {
        return open;
      },
      of: (callback: Callback) => endpointsOf(callback).flatMap((address) => open.get(address) ?? [])[0],
      refresh: () => Promise.resolve(),
    };
    const controller = new SubscriptionListController(
      {} as SubscriptionsService,
      { list: () => subscriptions } as unknown as SubscriptionDirectory,
      openEndpoints as unknown as OpenEndpoints,
      { show: ({ id }: { id: string }) => id } as unknown as SubscriptionAnswers,
      kept,
    );
    const parked = async () => {
      const reply = { raw: Object.assign(new EventEmitter(), { destroyed: false }), type: () => {} };
      const application = { id: 'operator' } as Application;
      const body = await controller.list({ state: 'parked' }, application, reply as unknown as FastifyReply);
      return (JSON.parse((body as Buffer).toString()) as { subscriptions: string[] }).subscriptions;
    };
    meanwhile = () => (open = only('two'));
    expect(await parked()).toEqual(['one']);
    meanwhile = () => {};
    expect(await parked()).toEqual(['two']);
    open = only('one');
    expect(await parked()).toEqual(['one']);
  });
});
