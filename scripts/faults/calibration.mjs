import { playScenario } from './play.mjs';

/** Enough to keep the machine busy. */
const publishers = 96;
const seconds = 8;

/**
 * Notifications a second that this machine accepts and delivers to both subscriptions when nothing is broken and
 * publishers never wait.
 * @param {import('./stage.mjs').Environment} environment
 * @returns {Promise<number>}
 */
export async function measureLimit(environment) {
  const { deliveriesPerSecond, wrong } = await playScenario(
    {
      name: 'limit',
      play: (stage) => stage.publisher.call('atOnce', { count: 1_000_000, publishers, seconds }),
    },
    environment,
  );
  if (wrong.length > 0) throw new Error(`It does not even work undisturbed: ${wrong.join('; ')}`);
  return deliveriesPerSecond / 2;
}
