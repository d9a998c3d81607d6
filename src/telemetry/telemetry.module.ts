import { Global, Module, type DynamicModule, type OnApplicationShutdown } from '@nestjs/common';
import { Tracing, type Tracer } from './tracing.js';

@Global()
@Module({})
export class TelemetryModule implements OnApplicationShutdown {
  static with(tracer: Tracer | undefined): DynamicModule {
    return { module: TelemetryModule, providers: [{ provide: Tracing, useValue: { tracer } }], exports: [Tracing] };
  }

  constructor(private readonly tracing: Tracing) {}

  /** When nothing is published or delivered any more. */
  async onApplicationShutdown(): Promise<void> {
    await this.tracing.tracer?.close();
  }
}
