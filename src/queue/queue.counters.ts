import { Counter } from 'prom-client';

export const handedToSiblings = new Counter({
  name: 'heraut_deliveries_handed_to_siblings_total',
  help: 'Deliveries that were handed over to another process of this installation, because the one that accepted them had more to send.',
});
