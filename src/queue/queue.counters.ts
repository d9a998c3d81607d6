import { Counter } from 'prom-client';

export const takenFromSiblings = new Counter({
  name: 'heraut_deliveries_taken_from_siblings_total',
  help: 'Deliveries that this process sends for another one of the same supervisor, which accepted them and had more to send.',
});
