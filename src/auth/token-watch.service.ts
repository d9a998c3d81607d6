import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Application } from './application.js';
import { Authorization, type Requirement } from './authorization.service.js';

/** As often as the catalogue looks whether an application was changed. */
const lookEveryMs = 1000;

interface Watched {
  request: FastifyRequest;
  application: Application;
  requirement: Requirement;
  ended: () => void;
}

/**
 * Tells where the token of a request that goes on for long would be refused by now, because its application was
 * deleted, given another secret, or lost what it may do. It compares what is in memory, and asks nobody.
 */
@Injectable()
export class TokenWatch implements OnModuleDestroy {
  private readonly watched = new Set<Watched>();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly authorization: Authorization) {}

  onModuleDestroy(): void {
    clearInterval(this.timer);
  }

  /**
   * @param application that was admitted
   * @returns to be called when nobody needs to know any more
   */
  add(request: FastifyRequest, application: Application, requirement: Requirement, ended: () => void): () => void {
    const watched = { request, application, requirement, ended };
    this.watched.add(watched);
    this.timer ??= setInterval(() => this.look(), lookEveryMs).unref();
    return () => this.remove(watched);
  }

  look(): void {
    for (const watched of this.watched) {
      const { request, application, requirement, ended } = watched;
      if (!this.authorization.refusalNow(request, application, requirement)) continue;
      this.remove(watched);
      ended();
    }
  }

  private remove(watched: Watched): void {
    this.watched.delete(watched);
    if (this.watched.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}
