import { Counter, Histogram } from 'prom-client';

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
// A series that begins with its first event hides that one from `increase`.
for (const reason of ['full', 'late', 'unanswered', 'failed']) publicationsRefused.inc({ reason }, 0);

export const publicationSeconds = new Histogram({
  name: 'heraut_publication_duration_seconds',
  help: 'Seconds from the arrival of a publication (POST) to its answer 201.',
  buckets: [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25],
});
