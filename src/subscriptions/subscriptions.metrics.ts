import { Gauge } from 'prom-client';

let read: () => number = () => 0;

const gauge = new Gauge({
  name: 'heraut_largest_share_ratio',
  help: 'Of what one application may have of subscriptions, in number, in memory or in sets of names, the part that the one with the largest part has.',
  aggregator: 'max',
  collect() {
    gauge.set(read());
  },
});

/** @param ratio is asked whenever the metric is read */
export function showLargestShare(ratio: () => number): void {
  read = ratio;
}
