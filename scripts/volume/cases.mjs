// The volumes that are measured. A case is deliveries in the ledger, or subscriptions in the catalogue.

/**
 * Rows of the ledger, one notification for each delivery, spread evenly over days. The values are SQL, computed from `n` (1 to
 * the rows of a day), `published` (when the notification was accepted) and `subscriptions` (an array of ids).
 * @typedef {object} Deliveries
 * @property {number} days up to and including today
 * @property {string} subscription
 * @property {Record<string, string>} columns of `delivery`
 * @property {Record<string, string> | undefined} attempt columns of the `attempt` of each; undefined: none was made
 * @property {string} [nextLook] SQL: when a dispatcher looks for what it may release of the subscription; undefined: nothing is held
 */

/**
 * @typedef {object} VolumeCase
 * @property {string} name
 * @property {string} what is there, for the table
 * @property {number} rows at full scale
 * @property {Deliveries} [deliveries] undefined: subscriptions that match nothing
 * @property {number} [arrivingPerSecond] new ones, for a subscription of a dead endpoint, which is the one of the deliveries
 */

const everyone = 'subscriptions[1 + n % cardinality(subscriptions)]';
const oneReceiver = 'subscriptions[1]';
const inADay = "now() + interval '1 day'";
/** Spread over an hour, so that they do not become due together. */
const tomorrow = `${inADay} + n % 3600 * interval '1 s'`;
const soonAfter = "published + interval '20 ms'";

/** @type {readonly VolumeCase[]} */
export const volumeCases = [
  {
    name: 'ended',
    what: 'ended deliveries, over ten days',
    rows: 10_000_000,
    deliveries: {
      days: 10,
      subscription: everyone,
      columns: { state: "'delivered'", attempts: '1', last_status: '204', ended_at: soonAfter },
      attempt: { status: '204' },
    },
  },
  {
    name: 'waiting',
    what: 'deliveries waiting for tomorrow, for a receiver in trouble',
    rows: 2_000_000,
    deliveries: {
      days: 2,
      subscription: oneReceiver,
      columns: { state: "'waiting'", attempts: '1', failures: '1', last_status: '503', next_at: tomorrow },
      attempt: { status: '503' },
    },
  },
  {
    name: 'held',
    what: 'held deliveries, for a receiver without room',
    rows: 500_000,
    deliveries: {
      days: 1,
      subscription: oneReceiver,
      columns: { state: "'held'", held_for: "'endpoint-busy'" },
      attempt: undefined,
      nextLook: inADay, // or they would be released: the receiver is well
    },
  },
  {
    name: 'parked',
    what: 'held deliveries, for a dead receiver that gets 200 more a second',
    rows: 500_000,
    deliveries: {
      days: 1,
      subscription: oneReceiver,
      columns: { state: "'held'", held_for: "'endpoint-parked'" },
      attempt: undefined,
      nextLook: 'now()',
    },
    arrivingPerSecond: 200,
  },
  {
    name: 'dead-letters',
    what: 'dead letters, over five days',
    rows: 500_000,
    deliveries: {
      days: 5,
      subscription: everyone,
      columns: { state: "'failed'", attempts: '1', failures: '1', last_status: '500', ended_at: soonAfter },
      attempt: { status: '500' },
    },
  },
  { name: 'subscriptions-10k', what: 'subscriptions that do not match', rows: 10_000 },
  { name: 'subscriptions-100k', what: 'subscriptions that do not match', rows: 100_000 },
];
