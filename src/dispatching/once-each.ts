import type { Logger } from '@nestjs/common';

interface Task {
  /** In logs. */
  name: string;
}

/**
 * Does each of these once, one after the other. One that fails is reported, and does not keep the next from running.
 * @returns the names of those that failed
 */
export async function onceEach<T extends Task>(
  tasks: readonly T[],
  run: (task: T) => Promise<unknown>,
  logger: Logger,
  stopping: AbortSignal,
): Promise<string[]> {
  const failed: string[] = [];
  for (const task of tasks) {
    if (stopping.aborted) break;
    try {
      await run(task);
    } catch (error) {
      logger.warn({ event: 'dispatcher.task-failed', task: task.name, error });
      failed.push(task.name);
    }
  }
  return failed;
}
