const mebibyte = 1024 * 1024;

/** With the texts, about; those of more than 8 KB are not in memory. */
export interface Memory {
  deliveries: number;
  bytes: number;
}

/**
 * Deliveries in the memory of a worker, at least: as many as it takes from the lane `fresh` of the queue before their
 * turn.
 */
const least = 4096;
/** At most. Those that take longer than five seconds get the longer lease by then (src/delivery/worker.service.ts). */
const most = 16_384;
/** Of all workers together, until each has `least`. */
const together = 2 * most;
/** With texts of a kilobyte, `most` take 25 MB. */
const bytes = 32 * mebibyte;

/**
 * How much a worker may have in memory before what its process accepts goes by the queue, to all workers. The way by
 * the queue costs a third of a delivery, so few workers do without it as long as they can. Of many workers each has
 * less: a publisher with one connection would keep a single one busy and leave the others idle (docs/decisions/0064).
 *
 * @param workers that the queue hands deliveries to
 */
export const mostInMemory = (workers: number): Memory => ({
  deliveries: Math.max(least, Math.min(most, Math.floor(together / workers))),
  bytes,
});
