import { Global, Module } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Outbound } from './outbound.service.js';

@Global()
@Module({
  providers: [
    { provide: Outbound, inject: [Config], useFactory: ({ settings }: Config): Outbound => new Outbound(settings) },
  ],
  exports: [Outbound],
})
export class OutboundModule {}
