import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Config } from '../config/config.module.js';
import { ValidationProblem, type InvalidParam } from '../infra/http/problem.js';
import { isLockTimeout } from '../infra/postgres/postgres-errors.js';
import { textOf } from '../infra/utf8-text.js';
import { ConfigurationRefused } from './configuration-refused.js';
import { ConfigurationService } from './configuration.service.js';
import { asLine, type Remark } from './configuration-text.js';
import type { Plan } from './planning.js';
import { readConfigurationAside } from './read-aside.js';

/** Of the changes, and of the notes about them, these many are named in the log. */
const mostLogged = 50;

/** Between two tries to apply the file. */
const turnPauseMs = 1000;

/**
 * Applies the file of `CONFIG_FILE` before this process does anything else. Of processes that start together one makes
 * the changes. All that the file does not name stays.
 */
@Injectable()
export class ConfigurationAtStart implements OnModuleInit {
  private readonly logger = new Logger('Configuration');

  constructor(
    private readonly config: Config,
    private readonly configuration: ConfigurationService,
  ) {}

  /** @throws {ConfigurationRefused} */
  async onModuleInit(): Promise<void> {
    const file = this.config.settings.CONFIG_FILE;
    if (file === undefined) return;
    const read = await readConfigurationAside(readText(file), { file });
    const line = asLine(file);
    for (const note of read.notes.map(line)) this.logger.warn({ event: 'configuration.note', note });
    const postponed: InvalidParam[] = [];
    const found = async (error: unknown): Promise<Remark[]> => {
      if (!(error instanceof ValidationProblem)) throw error;
      return read.remarksOn(error.extra.invalidParams ?? []);
    };
    if (read.problems.length > 0) {
      const more = await this.configuration.plan(read.configuration ?? {}, false, postponed).then(() => [], found);
      throw refused([...read.problems, ...more].map(line));
    }
    try {
      const { changes, unchanged } = await this.applyInTurn(read.configuration, postponed);
      const changed = changes.slice(0, mostLogged).map(({ section, action, key }) => `${action} ${section}/${key}`);
      const event = changes.length > 0 ? 'configuration.applied' : 'configuration.unchanged';
      for (const note of (await read.remarksOn(postponed)).map(line))
        this.logger.warn({ event: 'configuration.note', note });
      const notes = changes.flatMap((change) => change.notes.map((note) => `${change.section}/${change.key}: ${note}`));
      for (const note of notes.slice(0, mostLogged)) this.logger.warn({ event: 'configuration.note', note });
      if (notes.length > mostLogged)
        this.logger.warn({ event: 'configuration.note', note: `and ${notes.length - mostLogged} more of these` });
      this.logger.log({ event, file, changes: changes.length, changed, unchanged });
    } catch (error) {
      throw refused((await found(error)).map(line));
    }
  }

  /**
   * Another process may be applying a large file, for longer than anybody waits for a lock. When it has ended, a new
   * plan finds what is left to change.
   */
  private async applyInTurn(configuration: unknown, postponed: InvalidParam[]): Promise<Plan> {
    for (;;) {
      try {
        return await this.configuration.apply(configuration, false, { postponed });
      } catch (error) {
        if (!isLockTimeout(error)) throw error;
        this.logger.warn({ event: 'configuration.waits', for: 'another change of the configuration to end', error });
        await pause(turnPauseMs);
      }
    }
  }
}

const refused = (lines: readonly string[]): ConfigurationRefused =>
  new ConfigurationRefused(
    `Heraut cannot start, the configuration file is wrong (see docs/configuration-file.md). Nothing was changed.\n${lines.map((line) => `  ${line}`).join('\n')}`,
  );

function readText(file: string): string {
  try {
    return textOf(readFileSync(file));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw refused([`${file} cannot be read: ${code ?? message}`]);
  }
}
