import { describe, expect, it } from 'vitest';
import { settingsNotRead } from './of-open-notificaties.js';
import { settingsSchema } from './settings.js';

describe('settings of Open Notificaties', () => {
  it('that are not read are named, with those that take their place, and without their values', () => {
    const theirs = {
      SECRET_KEY: 'x',
      IS_HTTPS: 'true',
      DB_POOL_ENABLED: '1',
      CELERY_BROKER_URL: 'redis://',
      SENTRY_DSN: '',
    };
    expect(settingsNotRead(theirs)).toEqual([
      'CELERY_BROKER_URL',
      'DB_POOL_ENABLED (here DATABASE_POOL_SIZE)',
      'IS_HTTPS (here TRUST_FORWARDED_HEADERS)',
      'SECRET_KEY (here SECRET_KEYS)',
    ]);
  });

  it('are not taken for those that have the same name here, or that Kubernetes sets for a service', () => {
    const settings = Object.fromEntries(Object.keys(settingsSchema.shape).map((name) => [name, 'x']));
    const ofServices = { FLOWER_SERVICE_HOST: 'x', FLOWER_PORT: 'x', FLOWER_PORT_5555_TCP: 'x', PATH: 'x' };
    expect(settingsNotRead({ ...settings, ...ofServices })).toEqual([]);
  });
});
