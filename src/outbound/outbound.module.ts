import { Global, Logger, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Outbound } from './outbound.service.js';

@Global()
@Module({
  providers: [
    { provide: Outbound, inject: [Config], useFactory: ({ settings }: Config): Outbound => new Outbound(settings) },
  ],
  exports: [Outbound],
})
export class OutboundModule implements OnApplicationBootstrap {
  constructor(private readonly outbound: Outbound) {}

  onApplicationBootstrap(): void {
    if (!this.outbound.isLoopbackAllowed) return;
    const because = 'this is the embedded default, and CALLBACK_NETWORKS is not set';
    new Logger('Callback').log({ event: 'callbacks.loopback-allowed', because });
  }
}
