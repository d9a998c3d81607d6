import { Counter } from 'prom-client';

export const spansEnded = new Counter({
  name: 'heraut_spans_ended_total',
  help: 'Sampled spans that ended and are to be exported.',
});

export const spansExported = new Counter({
  name: 'heraut_spans_exported_total',
  help: 'Spans that the collector accepted. Fewer than ended for long: the others were dropped.',
});
