import { Counter, Gauge, Registry } from 'prom-client';

/** Metrics that only the supervisor knows. It serves none itself: they are told with those of its processes. */
export function supervisorMetrics() {
  const registry = new Registry();
  return {
    registry,
    ended: new Counter({
      name: 'heraut_processes_ended_total',
      help: 'Processes of PROCESSES that ended and were started again.',
      registers: [registry],
    }),
    running: new Gauge({
      name: 'heraut_processes',
      help: 'Processes of PROCESSES that run.',
      registers: [registry],
    }),
  };
}
