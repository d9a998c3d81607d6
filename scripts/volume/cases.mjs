// The volumes that are measured. A case is deliveries in the ledger, or subscriptions in the catalogue.

/**
 * Rows of the ledger, one notification for each delivery, spread evenly over days. The values are SQL, computed from
 * `n` (1 to the rows of a day), `published` (when the notification was accepted) and `subscriptions` (an array of ids).
 * @typedef {object} Deliveries
 * @property {number} days up to and including today
 * @property {string} subscription
 * @property {Record<string, string>} [notification] columns of `notification`, beside those that each has
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
 * @property {boolean} [isSearched] the searches of the admin API are measured, and no closed loop
 * @property {boolean} [isReleased] the deliveries are held for a receiver that takes them, beside the closed loop, which therefore has less
 * @property {number} [arrivingPerSecond] new ones, for a subscription of a dead endpoint, which is the one of the deliveries
 */

const everyone = 'subscriptions[1 + n % cardinality(subscriptions)]';
const oneReceiver = 'subscriptions[1]';
const inADay = "now() + interval '1 day'";
/** Spread over an hour, so that they do not become due together. */
const tomorrow = `${inADay} + n % 3600 * interval '1 s'`;
/** Written as Heraut writes it; each object has ten notifications of a day. */
const searchedBody = `'{"kanaal":"bench-fan-out","hoofdObject":"https://zaken.example.com/zaken/api/v1/zaken/' || n / 10 * 10
  || '","resource":"status","resourceUrl":"https://zaken.example.com/zaken/api/v1/statussen/' || n
  || '","actie":"' || CASE WHEN n % 100000 = 1 THEN 'seldom' WHEN n % 3 = 0 THEN 'update' ELSE 'create' END
  || '","kenmerken":{"bronorganisatie":"' || n % 10000 || '","zaaktype":"' || n % 50 || '"}}'`;
const perState = (/** @type {Record<string, string>} */ { delivered, failed, waiting }) =>
  `CASE WHEN n % 50 = 7 THEN ${failed} WHEN n % 200 = 9 THEN ${waiting} ELSE ${delivered} END`;
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
      // Or they would be released: the receiver is well. A look further ahead than ten minutes counts as never planned,
      // and is due.
      nextLook: "now() + interval '9 min'",
    },
  },
  {
    name: 'released',
    what: 'held deliveries, for a receiver that takes them',
    rows: 500_000,
    isReleased: true,
    deliveries: {
      days: 1,
      subscription: oneReceiver,
      columns: { state: "'held'", held_for: "'endpoint-busy'" },
      attempt: undefined,
      nextLook: 'now()',
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
  {
    name: 'search',
    what: 'notifications over ten days, of which each search of the admin API finds some or none',
    rows: 10_000_000,
    isSearched: true,
    deliveries: {
      days: 10,
      subscription: everyone,
      notification: {
        body: searchedBody,
        publisher: "CASE WHEN n % 500000 = 3 THEN 'rare' ELSE 'usual' END",
        request_key: "CASE WHEN n % 10 = 0 THEN 'key-' || n END",
      },
      columns: {
        state: `(${perState({ delivered: "'delivered'", failed: "'failed'", waiting: "'waiting'" })})::delivery_state`,
        attempts: perState({ delivered: '1', failed: '8', waiting: '2' }),
        last_status: perState({ delivered: '204', failed: 'CASE WHEN n % 100 = 7 THEN 503 END', waiting: '503' }),
        last_error: perState({
          delivered: 'NULL',
          failed: "CASE WHEN n % 100 = 7 THEN 'HTTP 503' ELSE 'no answer within 10 s' END",
          waiting: "'HTTP 503'",
        }),
        next_at: perState({ delivered: 'NULL', failed: 'NULL', waiting: tomorrow }),
        ended_at: perState({ delivered: soonAfter, failed: soonAfter, waiting: 'NULL' }),
      },
      attempt: undefined,
    },
  },
  { name: 'subscriptions-10k', what: 'subscriptions that do not match', rows: 10_000 },
  { name: 'subscriptions-100k', what: 'subscriptions that do not match', rows: 100_000 },
];
