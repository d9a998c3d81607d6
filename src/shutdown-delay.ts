import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { setTimeout as pause } from 'node:timers/promises';
import { shutdownDelayMs } from './config/server-settings.js';
import type { Settings } from './config/settings.js';
import { HealthChecks } from './health/health-checks.service.js';

/**
 * A signal may come twice: systemd tells the supervisor, npm and each process at the same moment, and the first two
 * pass it on.
 */
const sameSignalMs = 3000;

/**
 * The time between a signal and the end of a process that listens (SHUTDOWN_DELAY_SEC): its load balancer notices that
 * it is not ready, its callers are told to connect anew, and everything else goes on (docs/decisions/0086).
 */
export class ShutdownDelay {
  private readonly ended = new AbortController();
  private begunAt = performance.now();

  constructor(
    private readonly app: NestFastifyApplication,
    private readonly settings: Settings,
  ) {}

  async pass(): Promise<void> {
    const ms = shutdownDelayMs(this.settings);
    if (ms === 0) return;
    this.begunAt = performance.now();
    this.app.get(HealthChecks, { strict: false }).leave();
    this.app.getHttpAdapter().getInstance().answers.letCallersGo();
    await pause(ms, undefined, { signal: this.ended.signal }).catch(() => {}); // only ended
  }

  /** A further signal. */
  signalAgain(): void {
    if (performance.now() - this.begunAt >= sameSignalMs) this.end();
  }

  end(): void {
    this.ended.abort();
  }
}
