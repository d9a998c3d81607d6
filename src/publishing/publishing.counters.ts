import { Counter } from 'prom-client';

export const publicationsCounted = new Counter({
  name: 'heraut_publications_total',
  help: 'Publications answered with 201 or 200: accepted, expired (accepted but too old to be sent), duplicate (not sent: same content), replayed (same request), replaced (other content for a scheduled one).',
  labelNames: ['channel', 'result'],
});
