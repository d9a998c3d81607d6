import { Counter } from 'prom-client';

export const linesDroppedCounted = new Counter({
  name: 'heraut_log_lines_dropped_total',
  help: 'Lines of the log that were dropped because standard output was not read fast enough, or could not be written.',
});
