import fc from 'fast-check';
import type { ReplayKind } from '../../src/replays/replay.js';
import { modelTasks, type ModelTask } from './model-process.js';
import type { Fate } from './gates.js';
import type { CallEvent } from './model-receiver.js';

export type SubscriptionVerb =
  | 'remove'
  | 'disable'
  | 'enable'
  | 'pause'
  | 'resume'
  /** It has to be paused. */
  | 'drop-held'
  | 'keep-order'
  | 'end-order'
  /** One call a second. */
  | 'limit-rate'
  | 'lift-rate';

export interface PublishTerms {
  expiresInMs?: number;
  notBeforeInMs?: number;
  keepsPlace?: boolean;
}

/** Something that happens. `pick` chooses among what is there at that moment, modulo their number. */
export type Action =
  | { do: 'publish'; by: number; terms: PublishTerms }
  /** `count` steps of any processes at the same time. */
  | { do: 'step'; pick: number; fate: Fate; count: number }
  | { do: 'hand'; pick: number; to: number }
  | { do: 'call'; pick: number; event: CallEvent }
  | { do: 'task'; by: number; task: ModelTask }
  | { do: 'pass'; ms: number }
  | { do: 'kill' | 'stop' | 'freeze'; process: number }
  | { do: 'thaw' }
  /** A consumer's connection to the broker is lost. */
  | { do: 'requeue'; process: number }
  | { do: 'double'; pick: number }
  | { do: 'wipe'; isNoticed: boolean }
  /** Empties these tables, as a flush of Redis or a crash of Postgres does. */
  | { do: 'forget'; tables: readonly string[] }
  /** A message from one process to another, by their supervisor. */
  | { do: 'message'; pick: number; isLost: boolean }
  | { do: 'operate'; pick: number; verb: 'cancel' | 'retry' }
  | { do: 'subscription'; pick: number; verb: SubscriptionVerb }
  /** Sends again, cancels or closes deliveries of a subscription. `all`: also those that have to be named for it. */
  | { do: 'bulk'; pick: number; kind: ReplayKind; all: boolean; isSlow: boolean }
  /** Closes the circuit breaker of an endpoint in trouble. */
  | { do: 'reset'; pick: number };

const process = fc.nat({ max: 2 });
const pick = fc.nat({ max: 63 });
const always = <T>(value: T) => fc.constant(value);

const fate = fc.oneof(
  { weight: 12, arbitrary: always<Fate>('works') },
  { weight: 1, arbitrary: always<Fate>('fails') },
  { weight: 2, arbitrary: always<Fate>('works-unheard') },
);
const events = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<CallEvent>('send', 'arrive') },
  { weight: 4, arbitrary: always<CallEvent>(200) },
  { weight: 3, arbitrary: fc.constantFrom<CallEvent>(500, 'refuse', 'lose', 'vanish') },
  { weight: 1, arbitrary: always<CallEvent>(410) },
);
const terms = fc.oneof(
  { weight: 4, arbitrary: always({}) },
  { weight: 1, arbitrary: fc.record({ expiresInMs: fc.constantFrom(0, 5000, 60_000) }) },
  { weight: 1, arbitrary: fc.record({ notBeforeInMs: fc.constantFrom(0, 5000), keepsPlace: fc.boolean() }) },
);

/** As often as a story needs them for something to be accepted while its subscription is paused. */
const pauses = ['pause', 'pause', 'pause', 'resume', 'resume', 'drop-held', 'drop-held'] as const;
const orders = ['end-order', 'keep-order'] as const;
const rates = ['limit-rate', 'lift-rate'] as const;

const publish = fc.record({ do: always('publish' as const), by: process, terms });

const often = { weight: 9, arbitrary: always(false) };
const message = fc.record({
  do: always('message' as const),
  pick,
  isLost: fc.oneof(often, { weight: 1, arbitrary: always(true) }),
});

/** Mostly what ordinarily happens, now and then a misfortune. */
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 60,
    arbitrary: fc.record({ do: always('step' as const), pick, fate, count: fc.constantFrom(1, 1, 1, 2, 3) }),
  },
  { weight: 6, arbitrary: publish },
  { weight: 20, arbitrary: fc.record({ do: always('hand' as const), pick, to: process }) },
  { weight: 20, arbitrary: fc.record({ do: always('call' as const), pick, event: events }) },
  { weight: 10, arbitrary: message },
  {
    weight: 20,
    arbitrary: fc.record({
      do: always('task' as const),
      by: process,
      task: fc.constantFrom(...modelTasks),
    }),
  },
  // A linger, a window's patience, a retry, a dead process, a lease, a claim.
  {
    weight: 16,
    arbitrary: fc.record({
      do: always('pass' as const),
      ms: fc.constantFrom(10, 10, 10, 300, 300, 1100, 12_500, 16_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('kill' as const, 'stop' as const, 'freeze' as const), process }),
  },
  { weight: 3, arbitrary: fc.record({ do: always('thaw' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: always('requeue' as const), process }) },
  { weight: 4, arbitrary: fc.record({ do: always('double' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: always('wipe' as const), isNoticed: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: always('forget' as const),
      tables: fc.constantFrom(['idempotency_key'], ['idempotency_key', 'lane_progress', 'queue_creation']),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: always('operate' as const),
      pick,
      verb: fc.constantFrom('cancel' as const, 'retry' as const),
    }),
  },
  {
    weight: 7,
    arbitrary: fc.record({
      do: always('subscription' as const),
      pick,
      verb: fc.constantFrom<SubscriptionVerb>('remove', 'disable', 'enable', ...pauses, ...orders, ...rates),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: always('bulk' as const),
      pick,
      kind: fc.constantFrom<ReplayKind>('replay', 'replay', 'replay', 'cancel', 'close'),
      all: fc.boolean(),
      isSlow: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: always('reset' as const), pick }) },
);

const publishAndTell = (messages: number): Action[] => [
  { do: 'publish', by: 0, terms: {} },
  { do: 'step', pick: 0, fate: 'works', count: 3 },
  ...Array.from({ length: messages }, (): Action => ({ do: 'message', pick: 0, isLost: false })),
];
/** One process has so much in memory that it looks for room at another one, which has it for the next notification. */
const burst: Action[] = [1, 2, 3, 4].flatMap((): Action[] => [
  ...publishAndTell(2), // a question and its answer
  // It asks no sooner again.
  { do: 'pass', ms: 20 },
]);

const storyAfter = (beginning: fc.Arbitrary<Action[]>): fc.Arbitrary<Action[]> =>
  fc
    .tuple(beginning, fc.array(action, { minLength: 30, maxLength: 250, size: 'max' }))
    .map(([first, rest]) => [...first, ...rest]);

export const story = storyAfter(publish.map((first) => [first]));
export const storyOfBurst = storyAfter(publish.map((last) => [...burst, { ...last, by: 0 }]));
/** In which another process takes what one has accepted, for sure. */
export const storyOfTaking: Action[] = [...burst, ...publishAndTell(3)];
const changing = (pick: number, ...verbs: SubscriptionVerb[]) =>
  verbs.map((verb): Action => ({ do: 'subscription', pick, verb }));
/** In which an operator has something dropped, held for a rate, and in order or not, for sure. */
export const storyOfOperator: Action[] = [
  ...changing(0, 'pause'),
  ...changing(2, 'limit-rate'),
  ...publishAndTell(0),
  ...publishAndTell(0),
  ...publishAndTell(0),
  ...changing(0, 'keep-order', 'drop-held'),
  ...changing(1, 'end-order'),
];
