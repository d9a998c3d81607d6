import { Logger, type LoggerService } from '@nestjs/common';

/**
 * Has every class that logs write here. Nest does so only when it makes the application; before, the database is opened
 * and migrated, and Nest's own logger writes lines for a terminal.
 */
export const logAllBy = (logger: LoggerService): void => Logger.overrideLogger(logger);
