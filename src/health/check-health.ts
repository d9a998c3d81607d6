import type { Role } from '../config/server-settings.js';

/** One thing this process depends on. */
export interface HealthCheck {
  /** As it is named in the answer, e.g. `postgres`. */
  name: string;
  /** The roles that can do nothing without it. */
  stops: readonly Role[];
  /** @throws with a message for operators; it is shown without authentication, so it names no host and no secret */
  check(): Promise<void>;
}

export interface Part {
  status: 'up' | 'down';
  /** Why it is down; only then. */
  error?: string;
}

export interface Health {
  /**
   * `ready`: everything is up. `degraded`: something is down, yet a role of this process goes on working (RabbitMQ
   * down: publishing is still accepted). `unavailable`: no role of this process can work.
   */
  status: 'ready' | 'degraded' | 'unavailable';
  parts: Record<string, Part>;
  /** Names of the parts that are down. */
  down: string[];
}

/** @param report told of each part that is down, with the whole error: for the log, not for callers */
export async function checkHealth(
  checks: readonly HealthCheck[],
  roles: readonly Role[],
  timeoutMs: number,
  report: (name: string, error: unknown) => void,
): Promise<Health> {
  const stopped = new Set<Role>();
  const errors = await Promise.all(
    checks.map(async (check) => {
      const failure = await failureOf(check, timeoutMs);
      if (!failure) return undefined;
      report(check.name, failure.cause);
      if (!(failure.cause instanceof PartShort)) check.stops.forEach((role) => stopped.add(role));
      return publicMessage(failure.cause);
    }),
  );
  const down = checks.filter((_check, index) => errors[index] !== undefined);
  const isAnyRoleLeft = roles.some((role) => !stopped.has(role));
  return {
    status: down.length === 0 ? 'ready' : isAnyRoleLeft ? 'degraded' : 'unavailable',
    parts: Object.fromEntries(
      checks.map(({ name }, index) => {
        const error = errors[index];
        return [name, error === undefined ? { status: 'up' as const } : { status: 'down' as const, error }];
      }),
    ),
    down: down.map(({ name }) => name),
  };
}

async function failureOf(check: HealthCheck, timeoutMs: number): Promise<{ cause: unknown } | undefined> {
  return answerWithin(timeoutMs, check.check()).then(
    () => undefined,
    (cause: unknown) => ({ cause }),
  );
}

/** @throws {PartDown} when there is no answer in this time */
export async function answerWithin(timeoutMs: number, answer: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    const giveUp = () => reject(new PartDown(`no answer within ${timeoutMs / 1000} s`));
    // An answer that came while this process stood still is read before it is missed.
    timer = setTimeout(() => setImmediate(giveUp), timeoutMs);
  });
  try {
    await Promise.race([answer, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * A failure in the check's own words, safe to show; the message of any other error may name hosts, so only its code is
 * shown.
 */
export class PartDown extends Error {}

/** It lacks something, and works: no role stops for it. */
export class PartShort extends PartDown {}

function publicMessage(cause: unknown): string {
  if (cause instanceof PartDown) return cause.message;
  const code = (cause as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? `failed with ${code}` : 'failed, see the log';
}
