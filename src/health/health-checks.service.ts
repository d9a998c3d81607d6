import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { checkHealth, PartDown, type Health, type HealthCheck } from './check-health.js';

/** Longer than a busy database needs. A part that takes so long stops something, or is asked for less time. */
const timeoutMs = 2000;

/** Checks every part that this process depends on. */
@Injectable()
export class HealthChecks implements OnModuleDestroy {
  private readonly logger = new Logger(HealthChecks.name);
  private readonly checks: HealthCheck[] = [];
  private running: Promise<Health> | undefined;
  private lastSeen = '';
  private isStopping = false;

  constructor(private readonly config: Config) {
    this.register({
      name: 'process',
      stops: ['api', 'worker', 'dispatcher'],
      check: () => (this.isStopping ? Promise.reject(new PartDown('shutting down')) : Promise.resolve()),
    });
  }

  register(check: HealthCheck): void {
    this.checks.push(check);
  }

  /**
   * Calls that arrive together share one check: anyone may call, and must not be able to load the database that way.
   */
  look(): Promise<Health> {
    this.running ??= this.lookOnce().finally(() => (this.running = undefined));
    return this.running;
  }

  /** From here on a load balancer should send no new requests; those in flight are still finished. */
  leave(): void {
    this.isStopping = true;
  }

  /**
   * Nest calls the modules in the reverse order of app.module.ts, so this one, the last there, is called before the
   * others stop.
   */
  onModuleDestroy(): void {
    this.leave();
  }

  private async lookOnce(): Promise<Health> {
    const causes = new Map<string, unknown>();
    const { ROLES } = this.config.settings;
    const health = await checkHealth(this.checks, ROLES, timeoutMs, (part, cause) => causes.set(part, cause));
    // Probes come every few seconds, so the result is logged only when it changes.
    const seen = `${health.status} ${health.down.join()}`;
    if (seen !== this.lastSeen) {
      this.lastSeen = seen;
      for (const [part, error] of causes) this.logger.warn({ event: 'health.part-down', part, error });
      this.logger.log({ event: 'health.changed', status: health.status, down: health.down });
    }
    return health;
  }
}
