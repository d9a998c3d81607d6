import { Counter, Gauge } from 'prom-client';

export const openAlertsGauge = new Gauge({
  name: 'heraut_alerts_open',
  help: 'Alerts that are open, by rule, as this process last saw them; of several processes the largest.',
  labelNames: ['rule'],
  aggregator: 'max',
});

export const notesCounted = new Counter({
  name: 'heraut_alert_notes_total',
  help: 'Tries to send a note of alerts, by channel and by what came of them.',
  labelNames: ['channel', 'result'],
});
