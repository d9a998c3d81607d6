import { Counter } from 'prom-client';

export const publicationsCounted = new Counter({
  name: 'heraut_publications_total',
  help: 'Publications answered with 201 or 200: accepted, expired (accepted but too old to be sent), duplicate (not sent: same content), replayed (same request), replaced (other content for a scheduled one).',
  labelNames: ['channel', 'result'],
});

export const publicationsRefused = new Counter({
  name: 'heraut_publications_not_stored_total',
  help: 'Publications answered with 503: full (too much was waiting to be written), late (it waited too long), unanswered (Postgres did not answer in time), failed (it answered with an error, or the connection was lost).',
  labelNames: ['reason'],
});
