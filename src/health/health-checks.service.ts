import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { checkHealth, PartDown, type Health, type HealthCheck } from './check-health.js';

/** Longer than a busy database needs, shorter than the patience of an orchestrator's probe. */
const timeoutMs = 2000;

/** Looks at every part that this process depends on. */
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

  /** Callers that come together share one look: anyone may ask, and must not be able to load the database by asking. */
  look(): Promise<Health> {
    this.running ??= this.lookOnce().finally(() => (this.running = undefined));
    return this.running;
  }

  /** From here on a load balancer should send nothing new; what is in flight is still finished. */
  onModuleDestroy(): void {
    this.isStopping = true;
  }

  private async lookOnce(): Promise<Health> {
    const causes: Record<string, unknown> = {};
    const health = await checkHealth(this.checks, this.config.settings.ROLES, timeoutMs, (name, error) => {
      causes[name] = error;
    });
    // Probes come every few seconds: one event per change says as much as one per probe.
    const seen = `${health.status} ${health.down.join()}`;
    if (seen !== this.lastSeen) {
      const level = health.status === 'ready' ? 'log' : 'warn';
      this.logger[level]({ event: 'health.changed', status: health.status, down: health.down, causes });
      this.lastSeen = seen;
    }
    return health;
  }
}
