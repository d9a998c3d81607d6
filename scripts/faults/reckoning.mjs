/** @typedef {import('./publisher.mjs').Published} Published */
/** @typedef {import('./receiver.mjs').Arrivals} Arrivals */
/** @typedef {import('./ledger-view.mjs').LedgerEntry} LedgerEntry */
/** @typedef {'at-least-once' | 'at-most-once'} Strategy */

/** A time during which something was broken, on the shared clock. @typedef {{ fromMs: number, toMs: number }} Fault */

/**
 * The figures of one subscription, compared with its guarantee. Each accepted notification counts in exactly one of
 * `delivered`, `unknown`, `failed` and `lost`.
 * @typedef {object} Reckoning
 * @property {Strategy} strategy
 * @property {number} accepted notifications that got their 201
 * @property {number} delivered of these arrived
 * @property {number} lost of these neither arrived nor are reported
 * @property {number} unknown of these the ledger reports: sent, outcome never learnt
 * @property {number} failed of these the ledger reports as failed for good
 * @property {number} unknownArrived of the unknown did arrive
 * @property {number} duplicates arrivals beyond the first
 * @property {number | null} allowedDuplicates
 * @property {number} longestRecoveryMs longest time from acceptance to arrival while nothing was broken
 * @property {string[]} wrong sentences
 */

/**
 * Compares the arrivals that the receiver counted with the notifications that the publisher knows to be accepted.
 * @param {object} facts
 * @param {Strategy} facts.strategy
 * @param {Published} facts.published
 * @param {Arrivals} facts.arrivals
 * @param {Map<string, LedgerEntry>} facts.ledger by notification
 * @param {Fault[]} facts.faults
 * @param {Map<string, number>} facts.again how often each notification may come again, at least once; at most once none
 *   may
 * @param {number} facts.inFlight so many more may come again, whichever they are
 * @param {boolean} [facts.isInOrder] those about the same object must come in order
 * @param {boolean} [facts.mayBeUnknown] whether something was broken by which the outcome of a call is never learnt
 * @param {number} [facts.recoversWithinMs] the longest recovery may take so long
 * @returns {Reckoning}
 */
export function reckon({
  strategy,
  published,
  arrivals,
  ledger,
  faults,
  again,
  inFlight,
  isInOrder = false,
  mayBeUnknown = true,
  recoversWithinMs = Infinity,
}) {
  const arrived = new Map(Array.from(arrivals.numbers, (number, index) => [number, index]));
  const count = { accepted: 0, delivered: 0, lost: 0, unknown: 0, failed: 0, unknownArrived: 0 };
  let longestRecoveryMs = 0;
  /** @type {string[]} */
  const lost = [];
  /** @type {string[]} */
  const contradicted = [];
  /** @type {string[]} */
  const renamed = arrivals.renamed.map((number) => `number ${number}`);
  const overtaken = arrivals.overtaken.map((number) => `number ${number}`);
  published.ids.forEach((id, number) => {
    if (id === '') return;
    count.accepted += 1;
    const index = arrived.get(number);
    const state = ledger.get(id)?.state;
    if (index !== undefined && arrivals.ids[index] !== id) renamed.push(`${id} as ${arrivals.ids[index]}`);
    if (strategy === 'at-most-once' && (state === 'unknown' || state === 'failed')) {
      count[state] += 1;
      if (index !== undefined && state === 'unknown') count.unknownArrived += 1;
    } else if (index === undefined) {
      count.lost += 1;
      lost.push(`${id} (${state ?? 'not in the ledger'})`);
    } else {
      count.delivered += 1;
      if (state !== 'delivered') contradicted.push(`${id} (${state ?? 'not in the ledger'})`);
      const acceptedMs = published.acceptedMs[number] ?? 0;
      longestRecoveryMs = Math.max(longestRecoveryMs, unbrokenMs(acceptedMs, arrivals.firstMs[index] ?? 0, faults));
    }
  });
  const [mayComeAgain, allowedBeside] = strategy === 'at-most-once' ? [new Map(), 0] : [again, inFlight];
  let [duplicates, unexplained] = [0, 0];
  /** @type {string[]} */
  const came = [];
  arrivals.times.forEach((times, index) => {
    const id = arrivals.ids[index] ?? '';
    duplicates += times - 1;
    const more = times - 1 - (mayComeAgain.get(id) ?? 0);
    if (more <= 0) return;
    unexplained += more;
    came.push(id);
  });
  const wrong = [
    ...sentence('were lost', lost),
    ...sentence('arrived, and the ledger does not say so', contradicted),
    ...sentence('came under a webhook-id other than their own', renamed),
    ...(isInOrder ? sentence('came after a later one about the same object', overtaken) : []),
    // The receiver refuses none, and the policy of every scenario outlasts its faults.
    ...(count.failed > 0 ? [`${strategy}: ${count.failed} failed`] : []),
    ...(count.unknown > 0 && !mayBeUnknown
      ? [`${strategy}: ${count.unknown} are unknown, and nothing explains one`]
      : []),
    ...(longestRecoveryMs > recoversWithinMs
      ? [
          `${strategy}: a delivery took ${inSeconds(longestRecoveryMs)}, at most ${inSeconds(recoversWithinMs)} are allowed`,
        ]
      : []),
    ...(unexplained > allowedBeside
      ? [
          `${strategy}: ${unexplained} duplicates that nothing explains, beside at most ${allowedBeside}: ${inShort(came)}`,
        ]
      : []),
  ];
  const allowedDuplicates = allowedBeside + [...mayComeAgain.values()].reduce((sum, times) => sum + times, 0);
  return { strategy, ...count, duplicates, allowedDuplicates, longestRecoveryMs, wrong };

  /**
   * @param {string} what
   * @param {string[]} which
   */
  function sentence(what, which) {
    if (which.length === 0) return [];
    return [`${strategy}: ${which.length} ${what}: ${inShort(which)}`];
  }
}

/** @param {number} ms */
const inSeconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

/** @param {string[]} which */
const inShort = (which) => `${which.slice(0, 5).join(', ')}${which.length > 5 ? ', …' : ''}`;

/**
 * The part of a time that was outside every fault. Faults do not overlap.
 * @param {number} fromMs
 * @param {number} toMs
 * @param {Fault[]} faults
 */
export function unbrokenMs(fromMs, toMs, faults) {
  const broken = faults.reduce(
    (sum, fault) => sum + Math.max(0, Math.min(toMs, fault.toMs) - Math.max(fromMs, fault.fromMs)),
    0,
  );
  return Math.max(0, toMs - fromMs - broken);
}
