import { describe, expect, it } from 'vitest';
import { readSettings, type Settings } from '../config/settings.js';
import { settingsToShow } from './settings-to-show.js';

describe('the settings that an operator sees', () => {
  const shown = (environment: Record<string, string>) => settingsToShow(readSettings(environment));

  it('are those that differ from their defaults', () => {
    expect(shown({})).toEqual([]);
    expect(
      shown({
        RETENTION_DAYS: '30',
        LOG_LEVEL: 'warn',
        PORT: '8001',
        ROLES: 'worker,api,dispatcher',
        CALLBACK_PORTS: '443',
      }),
    ).toEqual([
      { name: 'PORT', value: '8001', default: '8000' },
      { name: 'ROLES', value: 'worker,api,dispatcher', default: 'api,worker,dispatcher' },
      { name: 'CALLBACK_PORTS', value: '{"first":443,"last":443}', default: null },
      { name: 'LOG_LEVEL', value: 'warn', default: 'info' },
    ]);
  });

  it('have no secret in them, only that there is one, and of a server where it is', () => {
    const secret = 'a-secret-that-nobody-sees';
    const settings = shown({
      DATABASE_URL: `postgres://heraut:${secret}@db.example:5432/heraut?password=${secret}`,
      AMQP_URL: `amqps://heraut:${secret}@queue.example`,
      REDIS_URL: `redis://:${secret}@redis.example:6379/3`,
      EGRESS_PROXY_URL: `http://${secret}:${secret}@proxy.example:3128`,
      ALERT_WEBHOOK_URL: `https://hooks.example/${secret}`,
      ALERT_WEBHOOK_SECRET: `whsec_${Buffer.from(secret.repeat(2)).toString('base64')}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: `https://collector.example/${secret}`,
      SUPERUSER_SECRET: secret,
      CONSOLE_URL: 'https://heraut.example/console',
      OIDC_ISSUER: 'https://id.example',
      OIDC_CLIENT_ID: 'heraut',
      OIDC_CLIENT_SECRET: secret,
      SECRET_KEYS: `a:${'A'.repeat(43)}`,
      EMAIL_HOST: 'mail.example',
      EMAIL_HOST_USER: 'heraut',
      EMAIL_HOST_PASSWORD: secret,
      DEFAULT_FROM_EMAIL: 'heraut@example.org',
    });
    const text = JSON.stringify(settings);
    for (const each of [secret, Buffer.from(secret).toString('base64').slice(0, 20), 'A'.repeat(43)])
      expect(text).not.toContain(each);
    expect(Object.fromEntries(settings.map(({ name, value }) => [name, value]))).toMatchObject({
      DATABASE_URL: 'postgres://db.example:5432',
      AMQP_URL: 'amqps://queue.example',
      ALERT_WEBHOOK_URL: 'https://hooks.example',
      SUPERUSER_SECRET: null,
      SECRET_KEYS: null,
      OIDC_ISSUER: 'https://id.example',
      OIDC_CLIENT_SECRET: null,
      EMAIL_HOST_PASSWORD: null,
    });
  });

  it('hide a text that nobody has said is no secret', () => {
    const settings = { ...readSettings({}), OF_TOMORROW: 'secret', PEOPLE_OF_TOMORROW: ['secret'] } as Settings;
    expect(settingsToShow(settings)).toEqual([
      { name: 'OF_TOMORROW', value: null, default: null },
      { name: 'PEOPLE_OF_TOMORROW', value: null, default: null },
    ]);
  });
});
