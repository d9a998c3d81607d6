import { ageGauge } from '../infra/age-gauge.js';

export const catalogueAge = ageGauge(
  'heraut_catalogue_age_seconds',
  'Seconds since a process has last asked Postgres for changes of channels, subscriptions, applications and policies; of several processes the largest.',
);
