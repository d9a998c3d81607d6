import { Global, Module } from '@nestjs/common';
import { Clock, systemClock } from './clock.js';

@Global()
@Module({ providers: [{ provide: Clock, useValue: systemClock }], exports: [Clock] })
export class ClockModule {}
